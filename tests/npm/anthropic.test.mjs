// The `@anthropic-ai/sdk` package: messages, streams, tools run by it, counts, errors, cancellation.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";
import { KEY, LONG, MODEL, URL, WEATHER, idle } from "./support.mjs";

const client = new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0 });
const City = z.object({ city: z.string().max(20), unit: z.enum(["C", "F"]) });
const asked = { model: MODEL, temperature: 0, max_tokens: 40 };
const user = (content) => [{ role: "user", content }];

test("models are listed", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes(MODEL));
});

test("a stream is the whole answer, and usage adds up to the counted prompt", async () => {
  const messages = user("Greet me, in English.");
  const whole = await client.messages.create({ ...asked, messages });
  const streamed = await client.messages.stream({ ...asked, messages }).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.equal(streamed.stop_reason, whole.stop_reason);
  const { input_tokens: counted } = await client.messages.countTokens({ model: MODEL, messages });
  for (const { usage } of [whole, streamed])
    assert.equal(usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens, counted);
  assert.equal(streamed.usage.cache_read_input_tokens, counted - 1);
});

test("tools run by the client itself", async () => {
  const inputs = [];
  const run = async (input) => {
    inputs.push(input);
    return "17 degrees";
  };
  const weather = betaZodTool({ name: "get_weather", description: "The weather.", inputSchema: City, run });
  const runner = client.beta.messages.toolRunner({
    ...asked, messages: user(WEATHER), tools: [weather], tool_choice: { type: "any" }, max_iterations: 2,
  });
  const turns = [];
  for await (const message of runner) turns.push(message);
  assert.equal(turns.length, 2);
  assert.equal(turns[0].stop_reason, "tool_use");
  assert.ok(inputs.length);
  inputs.forEach((input) => City.parse(input));
});

test("errors have their own classes and the server's words", async () => {
  const unknown = client.messages.create({ ...asked, model: "nobody", messages: user("Hi") });
  await assert.rejects(unknown, (error) => error instanceof Anthropic.NotFoundError && /nobody/.test(error.message));
  const hot = client.messages.create({ ...asked, top_p: 7, messages: user("Hi") });
  await assert.rejects(hot, (error) => error instanceof Anthropic.BadRequestError && /top_p/.test(error.message));
});

test("an abandoned stream stops the server's work", async () => {
  const stream = client.messages.stream({ ...asked, max_tokens: 4000, messages: user(LONG) });
  for await (const event of stream) if (event.type === "content_block_delta") break;
  await idle();
});
