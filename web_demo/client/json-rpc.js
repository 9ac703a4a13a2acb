/** The JSON-RPC messages of one connection: commands with their responses, and notifications. */

/** @import { RpcError } from "./types.d.ts" */
import { ClientError, commandFailed } from "./errors.js";

/** The largest message that the host accepts. */
export const FRAME_BYTES = 1_048_576;
const BYTES_PER_UNIT = 3;

/**
 * Called synchronously when the response arrives: the next message may depend on it.
 *
 * @typedef {{ resolve: (result: any) => void, reject: (error: ClientError) => void }} Response
 */

/** Ids start again on each connection. */
export class Exchange {
  /** @type {((text: string) => void) | undefined} */
  #write;
  /** @type {Map<number, Response>} */
  #commands = new Map();
  #lastId = 0;

  /** @param {(text: string) => void} write */
  begin(write) {
    this.#write = write;
    this.#lastId = 0;
  }

  /** The connection has ended: no response will come. */
  end() {
    this.#write = undefined;
    const asked = [...this.#commands.values()];
    this.#commands.clear();
    for (const { reject } of asked) reject(new ClientError("lost", "The connection was lost."));
  }

  /** @param {string} method @param {object} params @param {Response} response */
  ask(method, params, response) {
    this.#lastId += 1;
    this.#commands.set(this.#lastId, response);
    this.send(JSON.stringify({ jsonrpc: "2.0", id: this.#lastId, method, params }));
  }

  /** @param {string} method @param {object} params */
  notify(method, params) {
    this.send(notification(method, params));
  }

  /** @param {string} text - a whole message */
  send(text) {
    this.#write?.(text);
  }

  /** @param {{ id: number, result?: any, error?: RpcError }} answer */
  answer({ id, result, error }) {
    const asked = this.#commands.get(id);
    this.#commands.delete(id);
    if (error) asked?.reject(commandFailed(error));
    else asked?.resolve(result);
  }
}

/** @param {string} method @param {object} params @returns {string} */
export const notification = (method, params) => JSON.stringify({ jsonrpc: "2.0", method, params });

/**
 * The size of a message that is too large for the host. Only a text that could be too large is
 * encoded to find out.
 *
 * @param {string} text
 * @returns {number | undefined}
 */
export function excessiveSize(text) {
  if (text.length * BYTES_PER_UNIT <= FRAME_BYTES) return undefined;
  const size = new TextEncoder().encode(text).length;
  return size > FRAME_BYTES ? size : undefined;
}
