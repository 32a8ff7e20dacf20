// A program that uses the types made from /openapi.json: it has to compile, and then to work.
// usage: node generated.js URL KEY
import createClient from "openapi-fetch"
import type { components, paths } from "./api.js"

declare const process: { argv: string[] }
const [baseUrl, key] = process.argv.slice(2)
// Some calls are answered with events to clients that ask for them; this client has JSON answers only.
const api = createClient<paths, "application/json">({ baseUrl, headers: { Authorization: `Bearer ${key}` } })

function wanted<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.data
}

const template: components["schemas"]["Template"] = wanted(
  await api.POST("/v1/templates", { body: { name: "typed", imageName: "plugin/echo", env: { QUALITY: "85" } } }),
)
const endpoint = wanted(await api.POST("/v1/endpoints", { body: { templateId: template.id } })).id
const params = { path: { endpoint } }
const job = wanted(await api.POST("/sdk/v2/{endpoint}/runsync", { params, body: { input: { hello: "typed" } } }))
const ofJob = { path: { endpoint, id: job.id } }
const stream = wanted(await api.GET("/sdk/v2/{endpoint}/stream/{id}", { params: ofJob }))
const log = wanted(await api.GET("/v2/{endpoint}/logs/{id}", { params: ofJob }))
await api.DELETE("/v1/endpoints/{id}", { params: { path: { id: endpoint } } })
console.log(JSON.stringify({ env: template.env, status: job.status, output: job.output, stream, lines: log.lines }))
