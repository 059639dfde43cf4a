// The AI SDK of npm (the `ai` package): an answer, a streamed tool loop, and an answer of a given shape.
//
// Usage: npm install, then node ai_sdk.mjs "Your question"

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const URL = process.env.TWOSTROKE_URL ?? "http://127.0.0.1:8000";
const KEY = process.env.TWOSTROKE_API_KEY ?? "none";
const twostroke = createOpenAICompatible({
  name: "twostroke",
  baseURL: `${URL}/v1`,
  apiKey: KEY,
  includeUsage: true, // in streams too
  supportsStructuredOutputs: true, // a schema is enforced, not only described
});
const weather = tool({
  description: "The weather in a city, now.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, rain_mm: 12 }),
});
const Advice = z.object({ umbrella: z.boolean(), why: z.string().max(100) });

// What a prompt took to read.
function told({ inputTokens, outputTokens, inputTokenDetails }) {
  console.log(`  read ${inputTokens} tokens, ${inputTokenDetails.cacheReadTokens ?? 0} of them cached; wrote ${outputTokens}`);
}

const listed = await fetch(`${URL}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } });
const settings = { model: twostroke((await listed.json()).data[0].id), temperature: 0, maxOutputTokens: 60 };
const prompt = process.argv.slice(2).join(" ") || "Do I need an umbrella in Oslo?";

const answer = await generateText({ ...settings, prompt });
console.log(answer.text);
told(answer.usage);

const loop = streamText({
  ...settings,
  prompt,
  tools: { weather },
  stopWhen: stepCountIs(2),
  prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "auto" }),
});
for await (const part of loop.fullStream) {
  if (part.type === "tool-call") console.log("called", part.toolName, JSON.stringify(part.input));
  if (part.type === "text-delta") process.stdout.write(part.text);
  if (part.type === "error") throw part.error;
}
console.log();
for (const step of await loop.steps) told(step.usage);

const shaped = await generateText({ ...settings, prompt, output: Output.object({ schema: Advice }) });
console.log(shaped.output);
told(shaped.usage);
