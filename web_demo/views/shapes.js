// Marks for people without a name: a shape and a hue each, the same on every device that sees the
// same people, and two alike only when there are more people than shapes.

import { hueOf } from "../text/words.js";

/** @typedef {{ name: string, path: string, hue: number }} Shape */

const SHAPES = /** @type {const} */ ([
  ["star", "m8 2.5 1.7 3.5 3.8.5-2.8 2.7.7 3.8L8 11.2 4.6 13l.7-3.8-2.8-2.7 3.8-.5z"],
  ["leaf", "M3 13c0-6 3-9.5 10-10-.2 7-3.5 10-8.2 8.5M3 13l5-5"],
  ["moon", "M12.5 9.8A5.2 5.2 0 0 1 6.2 3.5a5.2 5.2 0 1 0 6.3 6.3z"],
  ["drop", "M8 2.5c2.7 3 4 5 4 6.8a4 4 0 0 1-8 0c0-1.8 1.3-3.8 4-6.8z"],
  ["heart", "M8 13 3.2 8.2a2.9 2.9 0 0 1 4.1-4.1L8 4.8l.7-.7a2.9 2.9 0 0 1 4.1 4.1z"],
  ["cloud", "M4.8 12a2.5 2.5 0 0 1 0-5A3.5 3.5 0 0 1 11.5 7.2a2.4 2.4 0 0 1-.2 4.8z"],
  ["peak", "m2 12.5 4.2-7.5 2.6 4.5 1.4-2 3.8 5z"],
  ["sun", "M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM8 2v1M8 13v1M2 8h1M13 8h1M3.8 3.8l.7.7M11.5 11.5l.7.7M12.2 3.8l-.7.7M4.5 11.5l-.7.7"],
]);

/**
 * @param {readonly string[]} clients
 * @returns {Map<string, Shape>}
 */
export function shapesOf(clients) {
  /** @type {Map<string, Shape>} */
  const shapes = new Map();
  /** @type {Set<number>} */
  const taken = new Set();
  for (const client of clients.toSorted()) {
    if (taken.size === SHAPES.length) taken.clear();
    let at = hueOf(client) % SHAPES.length;
    while (taken.has(at)) at = (at + 1) % SHAPES.length;
    taken.add(at);
    const [name, path] = SHAPES[at] ?? SHAPES[0];
    shapes.set(client, { name, path, hue: at });
  }
  return shapes;
}
