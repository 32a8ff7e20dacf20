// Follows jobs with the public SDK, all at the same time, and prints what each stream gave: a line of JSON.
// usage: node streams.mjs URL KEY ENDPOINT JOB...        URL ends in /sdk/v2
import runpodSdk from "runpod-sdk"

const [baseUrl, key, endpointId, ...jobs] = process.argv.slice(2)
const endpoint = runpodSdk(key, { baseUrl }).endpoint(endpointId)

async function follow(id) {
  const numbers = []
  try {
    for await (const chunk of endpoint.stream(id)) numbers.push(chunk.output.chunk)
    return { numbers, error: null }
  } catch (error) {
    return { numbers, error: String(error.message ?? error) }
  }
}

console.log(JSON.stringify(await Promise.all(jobs.map(follow))))
