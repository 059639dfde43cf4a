// What the tests of all npm clients share: where the server is, its metrics, and a question with tools.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

export const URL = process.env.TWOSTROKE_URL ?? "http://127.0.0.1:8000";
export const MODEL = process.env.TWOSTROKE_MODEL ?? "qwen2.5-coder-0.5b";
export const KEY = process.env.TWOSTROKE_API_KEY ?? "none";
export const WEATHER = "What is the weather in Paris? Use the tool.";
export const LONG = "Count from one to a thousand in words.";

// One gauge or counter of /metrics, summed over its labels.
export async function metric(name) {
  const text = await (await fetch(`${URL}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  assert.ok(lines.length, `/metrics has no ${name}`);
  return lines.map((line) => Number(line.split(" ").at(-1))).reduce((sum, value) => sum + value, 0);
}

// The server gives an abandoned answer up; fails if it still runs after five seconds.
export async function idle() {
  for (let tries = 0; tries < 100; tries++) {
    if ((await metric("twostroke:num_requests_running")) === 0) return;
    await sleep(50);
  }
  assert.fail("an abandoned answer still runs");
}
