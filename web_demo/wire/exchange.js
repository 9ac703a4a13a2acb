/**
 * Frames of one connection: commands and their answers. Ids start again on each connection.
 */

/** @import {RpcError} from "./types.d.ts" */
import { commandFailed, WireError } from "./errors.js";

/**
 * Called at once when the answer comes and not a microtask later: the next frame may build on it.
 *
 * @typedef {{ resolve: (result: any) => void, reject: (error: WireError) => void }} Answered
 */

export class Exchange {
  /** @type {((text: string) => void) | undefined} */
  #write;
  /** @type {Map<number, Answered>} */
  #asked = new Map();
  #lastId = 0;

  /** @param {(text: string) => void} write */
  begin(write) {
    this.#write = write;
    this.#lastId = 0;
  }

  /** The connection is over: no answer will come. */
  end() {
    this.#write = undefined;
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const { reject } of asked) reject(new WireError("lost", "The connection broke."));
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {Answered} answered
   */
  ask(method, params, answered) {
    this.#lastId += 1;
    this.#asked.set(this.#lastId, answered);
    this.#put({ jsonrpc: "2.0", id: this.#lastId, method, params });
  }

  /**
   * @param {string} method
   * @param {object} params
   */
  notify(method, params) {
    this.#put({ jsonrpc: "2.0", method, params });
  }

  /** @param {{ id: number, result?: any, error?: RpcError }} answer */
  answer({ id, result, error }) {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (error) asked?.reject(commandFailed(error));
    else asked?.resolve(result);
  }

  /** @param {object} frame */
  #put(frame) {
    this.#write?.(JSON.stringify(frame));
  }
}
