// Each operation of the public SDK, as tests/clients/test_operations.py has its workers ready for it; prints a line of JSON.
// usage: node operations.mjs URL KEY        URL ends in /sdk/v2; the endpoints are those of the test
import runpodSdk from "runpod-sdk"

const LONGEST = 60_000 // milliseconds; by itself the SDK gives up after 3 s, which a busy machine may need
const [baseUrl, key] = process.argv.slice(2)
const sdk = runpodSdk(key, { baseUrl })
const [remote, stream, parked] = ["remote", "stream", "parked"].map((id) => sdk.endpoint(id))
const failure = async (call) => {
  try {
    return await call
  } catch (error) {
    return { status: error.response?.status, error: error.response?.data?.error }
  }
}

const chunks = []
const numbers = await stream.run({ input: { count: 3 } }, LONGEST)
for await (const chunk of stream.stream(numbers.id)) chunks.push(chunk)
const begun = await remote.run({ input: { until: "never" } }, LONGEST)
while ((await remote.status(begun.id, LONGEST)).status !== "IN_PROGRESS") continue
const waiting = await parked.run({ input: {} }, LONGEST)
const asked = Date.now()
const idle = await parked.statusSync(waiting.id, 1000)
const waited = Date.now() - asked

console.log(JSON.stringify({
  begun,
  sync: await remote.runSync({ input: { a: 1 } }),
  failed: await remote.runSync({ input: { evaluate: "{'error': 'too warm'}" } }),
  late: await remote.runSync({ input: { until: "asked again" } }, 1500),
  ended: await stream.status(numbers.id, LONGEST),
  chunks,
  idle,
  waited,
  cancel: await remote.cancel(begun.id, LONGEST),
  cancelled: await remote.status(begun.id, LONGEST),
  health: await remote.health(LONGEST),
  purge: await parked.purgeQueue(LONGEST),
  nowhere: await failure(sdk.endpoint("nowhere").run({ input: {} }, LONGEST)),
  gone: await failure(remote.status("no-such-job", LONGEST)),
  refused: await failure(runpodSdk("wrong", { baseUrl }).endpoint("remote").health(LONGEST)),
  malformed: await failure(remote.run({}, LONGEST)),
  // An example of the SDK has this value, which is below the least one.
  short: await remote.runSync({ input: { b: 2 }, policy: { executionTimeout: 3000 } }),
}))
