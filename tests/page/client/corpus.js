/**
 * Runs the reducer cases of tests/corpus, in Node or in a browser; tests/corpus/README.md explains
 * them. Inputs are frozen, so that a reducer that changes one fails.
 */

import { reduceRoot, reduceSession } from "../../../web_demo/client/reducers/session.js";
import { same } from "../../../web_demo/client/reducers/updates.js";

/**
 * @param {any} value
 * @returns {any}
 */
export function frozen(value) {
  if (value && typeof value === "object") Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

/**
 * @param {any} state
 * @param {Record<string, any>} [changes]
 */
function assigned(state, changes = {}) {
  const result = structuredClone(state);
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split(".");
    const last = /** @type {string} */ (names.pop());
    const target = names.reduce((parent, name) => parent[name], result);
    if (value === null) delete target[last];
    else target[last] = structuredClone(value);
  }
  return result;
}

/**
 * What is wrong with how one case ends, if anything.
 *
 * @param {Record<string, any>} bases
 * @param {any} testCase
 * @returns {string | undefined}
 */
function fault(bases, { reducer, on, with: changes, at = 9999, do: actions, gives }) {
  const reduce = reducer === "root" ? reduceRoot : reduceSession;
  const start = frozen(assigned(bases[on], changes));
  const end = frozen(actions).reduce(
    (/** @type {any} */ state, /** @type {any} */ action) => reduce(state, action, at),
    start,
  );
  const plain = JSON.stringify(end);
  if (!same(JSON.parse(plain), assigned(start, gives))) return `it ends in ${plain}`;
  if (!strictlyPresent(end)) return "a key is undefined";
  if ((end === start) !== !Object.keys(gives).length) return "sameness is wrong";
  return undefined;
}

/** @param {any} value @returns {boolean} */
const strictlyPresent = (value) =>
  value !== undefined &&
  (!value || typeof value !== "object" || Object.values(value).every(strictlyPresent));

/**
 * @param {string} topic
 * @param {any} file
 * @returns {{ ran: number, faults: string[] }}
 */
export function runFile(topic, file) {
  const faults = [];
  for (const testCase of file.cases) {
    let found;
    try {
      found = fault(file.bases, testCase);
    } catch (error) {
      found = String(error);
    }
    if (found) faults.push(`${topic}: ${testCase.name}: ${found}`);
  }
  return { ran: file.cases.length, faults };
}
