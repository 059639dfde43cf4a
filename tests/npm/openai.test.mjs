// The `openai` package: chat completions, the Responses API, tools run by it, shapes by zod, errors, cancellation.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { KEY, LONG, MODEL, URL, WEATHER, idle } from "./support.mjs";

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0 });
const City = z.object({ city: z.string().max(20), unit: z.enum(["C", "F"]) });
const asked = { model: MODEL, temperature: 0, max_tokens: 40 };
const user = (content) => [{ role: "user", content }];

test("models are listed", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes(MODEL));
});

test("a stream is the whole answer", async () => {
  const whole = await client.chat.completions.create({ ...asked, messages: user("Say hello.") });
  const stream = client.chat.completions.stream({ ...asked, messages: user("Say hello.") });
  const streamed = await stream.finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, whole.choices[0].message.content);
  const { usage } = await client.chat.completions.create({ ...asked, messages: user("Say hello.") });
  assert.equal(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens - 1);
});

test("tools run by the client itself", async () => {
  const inputs = [];
  const run = async (input) => {
    inputs.push(input);
    return { degrees: 17 };
  };
  const weather = zodFunction({ name: "get_weather", parameters: City, function: run });
  const runner = client.chat.completions.runTools(
    { ...asked, messages: user(WEATHER), tools: [weather], tool_choice: { type: "function", function: { name: "get_weather" } } },
    { maxChatCompletions: 2 },
  );
  await runner.done();
  assert.ok(inputs.length);
  inputs.forEach((input) => City.parse(input));
});

test("a shape by zod, in chat completions and in the Responses API", async () => {
  const chat = await client.chat.completions.parse({
    ...asked, messages: user("Paris, in Celsius."), response_format: zodResponseFormat(City, "city"),
  });
  City.parse(chat.choices[0].message.parsed);
  const response = await client.responses.parse({
    model: MODEL, temperature: 0, max_output_tokens: 40, input: "Paris, in Celsius.",
    text: { format: zodTextFormat(City, "city") },
  });
  assert.deepEqual(response.output_parsed, chat.choices[0].message.parsed);
});

test("a response as it is written, kept and found again", async () => {
  const stream = client.responses.stream({ model: MODEL, temperature: 0, max_output_tokens: 20, input: "Say hello." });
  let text = "";
  for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
  const whole = await stream.finalResponse();
  assert.equal(whole.output_text, text);
  assert.deepEqual((await client.responses.retrieve(whole.id)).output, whole.output.map(({ parsed, ...item }) => plain(item)));
});

// An item without what the client itself adds to it.
function plain(item) {
  return { ...item, content: item.content.map(({ parsed, ...part }) => part) };
}

test("errors have their own classes and the server's words", async () => {
  const unknown = client.chat.completions.create({ ...asked, model: "nobody", messages: user("Hi") });
  await assert.rejects(unknown, (error) => error instanceof OpenAI.NotFoundError && /nobody/.test(error.message));
  const hot = client.chat.completions.create({ ...asked, top_p: 7, messages: user("Hi") });
  await assert.rejects(hot, (error) => error instanceof OpenAI.BadRequestError && error.param === "top_p");
});

test("an abandoned stream stops the server's work", async () => {
  const stream = await client.chat.completions.create({ ...asked, max_tokens: 4000, messages: user(LONG), stream: true });
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
  await idle();
});
