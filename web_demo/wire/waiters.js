/**
 * Those who wait until the host has what a field shows.
 */

/** @import {WireError} from "./errors.js" */

/** @typedef {{ resolve: () => void, reject: (error: WireError) => void }} Waiter */

export class Waiters {
  /** @type {Waiter[]} */ #waiters = [];

  /** @returns {Promise<void>} */
  join() {
    const decided = new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
    decided.catch(() => {}); // refusals are shown at the field, whoever waits
    return decided;
  }

  resolve() {
    for (const { resolve } of this.#taken()) resolve();
  }

  /** @param {WireError} error */
  reject(error) {
    for (const { reject } of this.#taken()) reject(error);
  }

  #taken() {
    const waiters = this.#waiters;
    this.#waiters = [];
    return waiters;
  }
}
