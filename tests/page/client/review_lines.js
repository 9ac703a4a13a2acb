/**
 * Reviews for another process: each line of stdin is `{state, actions, requestId, own}`; each line of
 * stdout is `{items, reviewed}` as they are after the actions, or `{error}`.
 */

import { createInterface } from "node:readline";

import { reduceSession } from "../../../web_demo/client/reducers/session.js";
import { openRequest } from "../../../web_demo/client/reducers/input-requests.js";
import { predicted, reviewOf, reviewed } from "../../../web_demo/client/review.js";
import { frozen } from "./corpus.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(frozen(JSON.parse(line))))}\n`);
}

/** @param {any} asked */
function answer({ state, actions, requestId, own }) {
  try {
    for (const action of actions) {
      state = frozen(reduceSession(state, predicted(state, action), 0));
    }
    const request = /** @type {any} */ (openRequest(state, requestId));
    return { items: reviewOf(request, own), reviewed: reviewed(request, own) };
  } catch (error) {
    return { error: String(error instanceof Error ? error.stack : error) };
  }
}
