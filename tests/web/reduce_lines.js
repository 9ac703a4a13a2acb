/**
 * Reduces for another process: each line of stdin is `{reducer, state, actions}` with actions
 * `[action, at]`; each line of stdout is `{state, isSame}`, or `{error}`.
 */

import { createInterface } from "node:readline";

import { reduceRoot, reduceSession } from "../../web_demo/wire/reducer.js";
import { frozen } from "./corpus.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}

/** @param {any} asked */
function answer({ reducer, state: start, actions }) {
  const reduce = reducer === "root" ? reduceRoot : reduceSession;
  try {
    let state = frozen(start);
    for (const [action, at] of frozen(actions)) state = reduce(state, action, at);
    return { state, isSame: state === start };
  } catch (error) {
    return { error: String(error instanceof Error ? error.stack : error) };
  }
}
