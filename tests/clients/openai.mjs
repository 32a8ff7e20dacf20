// The npm client of OpenAI, unmodified, against a server whose endpoint `chat` runs lua/openai_echo.
import OpenAI from "openai";

const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v2/chat/openai/v1`, apiKey: key, maxRetries: 0 });
const ask = { model: "m", messages: [{ role: "user", content: "the quick brown fox" }] };

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const whole = await client.chat.completions.create(ask);
const words = [];
for await (const event of await client.chat.completions.create({ ...ask, stream: true })) {
  words.push(event.choices[0].delta.content);
}
const errors = [];
for (const call of [
  () => client.chat.completions.create({ model: "m", messages: [] }),
  () => new OpenAI({ baseURL: client.baseURL, apiKey: "wrong", maxRetries: 0 }).models.list(),
]) {
  try {
    await call();
  } catch (error) {
    errors.push(`${error.constructor.name} ${error.status}`);
  }
}
console.log(JSON.stringify({ models, content: whole.choices[0].message.content, words: words.join(""), errors }));
