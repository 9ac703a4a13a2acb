/**
 * Reduces for another process: each line of stdin is `{reducer, state, actions}` with actions
 * `[action, at]`; each line of stdout is `{state, same}`, where `same` says for each action whether
 * it gave back the very object that it was given, or `{error}`.
 */

import { createInterface } from "node:readline";

import { reduceRoot, reduceSession } from "../../../web_demo/client/reducers/session.js";
import { frozen } from "./corpus.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}

/** @param {any} asked */
function answer({ reducer, state: start, actions }) {
  const reduce = reducer === "root" ? reduceRoot : reduceSession;
  const same = [];
  try {
    let state = frozen(start);
    for (const [action, at] of frozen(actions)) {
      const next = reduce(state, action, at);
      same.push(next === state);
      state = frozen(next);
    }
    return { state, same };
  } catch (error) {
    return { error: String(error instanceof Error ? error.stack : error) };
  }
}
