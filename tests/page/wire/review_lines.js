/**
 * Reviews for another process: each line of stdin is `{state, actions, requestId, own}`; each line of
 * stdout is `{items, reviewed}` as they are after the actions, or `{error}`.
 */

import { createInterface } from "node:readline";

import { reduceSession } from "../../../web_demo/wire/reducer.js";
import { openRequest } from "../../../web_demo/wire/reducers/requests.js";
import { foreseen, reviewOf, reviewed } from "../../../web_demo/wire/review.js";
import { frozen } from "./corpus.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(frozen(JSON.parse(line))))}\n`);
}

/** @param {any} asked */
function answer({ state, actions, requestId, own }) {
  try {
    for (const action of actions) {
      state = frozen(reduceSession(state, foreseen(state, action), 0));
    }
    const request = /** @type {any} */ (openRequest(state, requestId));
    return { items: reviewOf(request, own), reviewed: reviewed(request, own) };
  } catch (error) {
    return { error: String(error instanceof Error ? error.stack : error) };
  }
}
