-- Answers OpenAI's clients without a model: says the last message again, with "stream" word by word. The base URL of a
-- client is <server>/v2/<endpoint>/openai/v1.
--
--   input   {"openai_route": "/v1/completions", "openai_input": {"prompt": "hello"}}
--   output  {"choices": [{"finish_reason": "stop", "index": 0, "text": "hello"}], ...}, an answer of OpenAI's API
--
-- Routes: /v1/models, /v1/chat/completions, /v1/completions.
local MODEL = "echo"

local function refuse(code, message)
  return { error = { message = message, type = "invalid_request_error", code = code } }
end

local function textOf(content)
  if type(content) == "string" then return content end
  local parts = {}
  for _, part in ipairs(type(content) == "table" and content or {}) do
    if type(part) == "table" and type(part.text) == "string" then parts[#parts + 1] = part.text end
  end
  return table.concat(parts, " ")
end

local function chat(body, job)
  local messages = body.messages
  local last = type(messages) == "table" and messages[#messages]
  if type(last) ~= "table" then return refuse(400, "messages must be a list with a message") end
  local said = textOf(last.content)
  local id = "chatcmpl-" .. job.id
  local function choice(object, name, part, reason)
    return { id = id, object = object, created = 0, model = type(body.model) == "string" and body.model or MODEL,
             choices = { { index = 0, [name] = part, finish_reason = reason } } }
  end
  if body.stream ~= true then  -- also null, which counts as true in Lua
    return choice("chat.completion", "message", { role = "assistant", content = said }, "stop")
  end
  job:emit(choice("chat.completion.chunk", "delta", { role = "assistant", content = "" }))
  for word in said:gmatch("%s*%S+") do
    if job:stopped() then return {} end
    job:emit(choice("chat.completion.chunk", "delta", { content = word }))
  end
  job:emit(choice("chat.completion.chunk", "delta", { content = "" }, "stop"))
  return {}
end

return function(input, job)
  local route, body = input.openai_route, input.openai_input or {}
  if route == "/v1/models" then
    return { object = "list", data = { { id = MODEL, object = "model", created = 0, owned_by = "jobq" } } }
  elseif route == "/v1/chat/completions" then
    return chat(body, job)
  elseif route == "/v1/completions" then
    return { id = "cmpl-" .. job.id, object = "text_completion", created = 0, model = type(body.model) == "string" and body.model or MODEL,
             choices = { { index = 0, text = textOf(body.prompt), finish_reason = "stop" } } }
  end
  return refuse(404, "this handler has no route " .. tostring(route))
end
