// The `ai` package through all of its providers that speak to this server: what an application does with it.
//
// The model is small and says little of sense; what is asserted is what any model must get right: shapes, schemas,
// counts that add up, a stream that is the whole answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { KEY, LONG, MODEL, URL, WEATHER, idle, metric } from "./support.mjs";

const address = { baseURL: `${URL}/v1`, apiKey: KEY };
const openai = createOpenAI(address);
const anthropic = createAnthropic(address);
const compatible = createOpenAICompatible({
  ...address, name: "twostroke", includeUsage: true, supportsStructuredOutputs: true,
});
const providers = {
  "openai, Responses (its default)": openai,
  "openai, chat completions": openai.chat,
  "openai-compatible": compatible,
  "anthropic": anthropic,
};
const settings = { temperature: 0, maxOutputTokens: 40, maxRetries: 0 };
const brief = { ...settings, maxOutputTokens: 12 };
const City = z.object({ city: z.string().max(20), unit: z.enum(["C", "F"]) });

function weatherTool(asked) {
  const execute = async (input) => {
    asked.push(input);
    return { degrees: 17 };
  };
  return { get_weather: tool({ description: "The weather in a city.", inputSchema: City, execute }) };
}

for (const [name, provider] of Object.entries(providers)) {
  const model = provider(MODEL);

  test(`${name}: a stream is the whole answer, and its usage is the same but for what is cached`, async () => {
    const asked = { model, ...brief, system: "Be brief.", prompt: `Say hello (${name}).` };
    const whole = await generateText(asked);
    const stream = streamText(asked);
    let text = "";
    let pieces = 0;
    for await (const piece of stream.textStream) {
      text += piece;
      pieces += 1;
    }
    assert.ok(whole.text);
    assert.ok(pieces > 1 || whole.usage.outputTokens < 4);
    assert.equal(text, whole.text);
    assert.equal(await stream.finishReason, whole.finishReason);
    const { inputTokens, outputTokens, inputTokenDetails } = await stream.usage;
    assert.equal(inputTokens, whole.usage.inputTokens);
    assert.equal(outputTokens, whole.usage.outputTokens);
    assert.equal(inputTokenDetails.cacheReadTokens, inputTokens - 1);
  });

  test(`${name}: a second turn reads what the first one left`, async () => {
    const messages = [{ role: "user", content: `Name a colour (${name}).` }];
    const first = await generateText({ model, ...brief, messages });
    const again = { role: "user", content: "Another." };
    const second = await generateText({ model, ...brief, messages: [...messages, ...first.response.messages, again] });
    const known = first.usage.inputTokens + first.usage.outputTokens;
    assert.ok(second.usage.inputTokenDetails.cacheReadTokens >= known - 1);
  });

  test(`${name}: a whole tool loop`, async () => {
    const asked = [];
    const { steps } = await generateText({
      model, ...settings, prompt: WEATHER, tools: weatherTool(asked), stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) => (stepNumber === 0 ? { toolChoice: "required" } : {}),
    });
    assert.equal(steps.length, 2);
    assert.equal(steps[0].finishReason, "tool-calls");
    assert.deepEqual(steps[0].toolResults.map((result) => result.output.degrees), asked.map(() => 17));
    assert.ok(asked.length);
    asked.forEach((input) => City.parse(input));
    const [before, after] = steps.map((step) => step.usage);
    assert.ok(after.inputTokenDetails.cacheReadTokens >= before.inputTokens + before.outputTokens - 1);
  });

  test(`${name}: streamed calls are the whole ones`, async () => {
    const asked = { model, ...settings, prompt: WEATHER, tools: weatherTool([]), toolChoice: "required" };
    const whole = await generateText(asked);
    const parts = [];
    for await (const part of streamText(asked).fullStream) parts.push(part);
    const called = (calls) => calls.map(({ toolName, input }) => ({ toolName, input }));
    assert.ok(whole.toolCalls.length);
    assert.deepEqual(called(parts.filter((part) => part.type === "tool-call")), called(whole.toolCalls));
    const errors = parts.filter((part) => part.type === "error" || part.type === "tool-error");
    assert.deepEqual(errors, []);
  });

  test(`${name}: structured output fits its schema, whole and streamed`, async () => {
    const asked = { model, ...settings, prompt: "Paris, in Celsius.", output: Output.object({ schema: City }) };
    const whole = await generateText(asked);
    City.parse(whole.output);
    const stream = streamText(asked);
    let last;
    for await (const partial of stream.partialOutputStream) last = partial;
    assert.deepEqual(last, whole.output);
  });

  test(`${name}: a refusal is an APICallError with the server's own words`, async () => {
    const refused = (error) => APICallError.isInstance(error) && !error.isRetryable;
    const unknown = await generateText({ model: provider("nobody"), ...settings, prompt: "Hi" }).catch((error) => error);
    assert.ok(refused(unknown), String(unknown));
    assert.equal(unknown.statusCode, 404);
    assert.match(unknown.message, /nobody/);
    const hot = await generateText({ model, ...settings, topP: 7, prompt: "Hi" }).catch((error) => error);
    assert.ok(refused(hot), String(hot));
    assert.equal(hot.statusCode, 400);
    assert.match(hot.message, /top_p/);
    const streamed = streamText({ model: provider("nobody"), ...settings, prompt: "Hi", onError: () => {} });
    const parts = [];
    for await (const part of streamed.fullStream) parts.push(part);
    assert.match(parts.find((part) => part.type === "error").error.message, /nobody/);
  });

  test(`${name}: an aborted stream stops the server's work`, async () => {
    const before = await metric("twostroke:request_success_total");
    const control = new AbortController();
    const { fullStream } = streamText({
      model, ...settings, maxOutputTokens: 4000, prompt: LONG, abortSignal: control.signal, onError: () => {},
    });
    let aborted = false;
    for await (const part of fullStream) {
      if (part.type === "text-delta") control.abort();
      aborted ||= part.type === "abort";
    }
    assert.ok(aborted);
    await idle();
    assert.equal(await metric("twostroke:request_success_total"), before + 1); // finished_reason="abort" is one of them
  });
}

test("openai, Responses: a turn goes on from a stored one", async () => {
  const model = openai(MODEL);
  const first = await generateText({ model, ...brief, prompt: "Name a river." });
  const previousResponseId = first.providerMetadata.openai.responseId;
  const again = { providerOptions: { openai: { previousResponseId } } };
  const second = await generateText({ model, ...brief, ...again, prompt: "Another." });
  const known = first.usage.inputTokens + first.usage.outputTokens;
  assert.ok(second.usage.inputTokenDetails.cacheReadTokens >= known - 1);
});

test("openai-compatible: the older generateObject gives the same", async () => {
  const asked = { model: compatible(MODEL), ...settings, prompt: "Paris, in Celsius." };
  const { object } = await generateObject({ ...asked, schema: City });
  assert.deepEqual(object, (await generateText({ ...asked, output: Output.object({ schema: City }) })).output);
});

test("openai, completions", async () => {
  const { text, usage } = await generateText({ model: openai.completion(MODEL), ...brief, prompt: "def add(" });
  assert.ok(text);
  assert.ok(usage.inputTokens > 0);
});

test("anthropic: a schema in output_config, and marked parts with what was written to the cache", async () => {
  const system = {
    role: "system", content: "Answer in JSON. ".repeat(40),
    providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } },
  };
  const asked = {
    model: anthropic(MODEL), ...settings, system, prompt: "Paris, in Celsius.",
    output: Output.object({ schema: City }),
    providerOptions: { anthropic: { structuredOutputMode: "outputFormat" } },
  };
  const first = await generateText(asked);
  City.parse(first.output);
  const second = await generateText(asked);
  assert.deepEqual(second.output, first.output);
  for (const { inputTokens, inputTokenDetails: parts } of [first.usage, second.usage])
    assert.equal(parts.noCacheTokens + parts.cacheReadTokens + parts.cacheWriteTokens, inputTokens);
  assert.ok(first.usage.inputTokenDetails.cacheWriteTokens > 0);
  assert.ok(second.usage.inputTokenDetails.cacheReadTokens >= first.usage.inputTokenDetails.cacheWriteTokens);
});
