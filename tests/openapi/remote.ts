// A program that uses the types made from /openapi.json for jobs of remote workers: tests/clients/test_generated_clients.py
// starts it. usage: node remote.js URL KEY
// The first line has the id of a job that is cancelled once a line comes in: its worker has to know of the job before.
import createClient from "openapi-fetch"
import type { components, paths } from "./api.js"

declare const process: { argv: string[]; stdin: { once(event: "data", then: () => void): void } }
const [baseUrl, key] = process.argv.slice(2)
const api = createClient<paths, "application/json">({ baseUrl, headers: { Authorization: `Bearer ${key}` } })
type Job = components["schemas"]["Job"]

function wanted<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.data
}

async function submit(endpoint: string, input: { [name: string]: unknown }): Promise<string> {
  return wanted(await api.POST("/v2/{endpoint}/run", { params: { path: { endpoint } }, body: { input } })).id
}

async function ended(endpoint: string, id: string): Promise<Job> {
  const params = { path: { endpoint, id }, query: { wait: 60000 } }
  return wanted(await api.GET("/v2/{endpoint}/status-sync/{id}", { params }))
}

// Chunks are handed out once: the last answer has the end of the job, and the chunks that were left.
async function streamed(endpoint: string, id: string): Promise<unknown[]> {
  const outputs: unknown[] = []
  for (;;) {
    const params = { path: { endpoint, id } }
    const answer = wanted(await api.GET("/sdk/v2/{endpoint}/stream/{id}", { params }))
    for (const chunk of answer.stream) outputs.push(chunk.output)
    if (answer.status !== "IN_QUEUE" && answer.status !== "IN_PROGRESS") return outputs
  }
}

async function cancelled(endpoint: string): Promise<Job> {
  const id = await submit(endpoint, { until: "never" })
  const params = { path: { endpoint, id } }
  console.log(id)
  await new Promise<void>((then) => process.stdin.once("data", then))
  wanted(await api.POST("/v2/{endpoint}/cancel/{id}", { params }))
  return await ended(endpoint, id)
}

const numbers = await submit("stream", { count: 3 })
console.log(JSON.stringify({
  sync: wanted(await api.POST("/v2/{endpoint}/runsync",
    { params: { path: { endpoint: "remote" } }, body: { input: { hello: "typed" } } })),
  waited: await ended("remote", await submit("remote", { n: [1, null] })),
  failed: await ended("remote", await submit("remote", { evaluate: "{'error': 'too warm'}" })),
  chunks: await streamed("stream", numbers),
  streamed: await ended("stream", numbers),
  cancelled: await cancelled("remote"),
}))
