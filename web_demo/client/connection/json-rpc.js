/** The JSON-RPC messages of one connection: requests with their responses, and notifications. */

/** @import { RpcError } from "../types.d.ts" */
import { ClientError, commandFailed } from "../errors.js";

/** The largest message that the host accepts. */
export const FRAME_BYTES = 1_048_576;
const BYTES_PER_UNIT = 3;

/**
 * Called synchronously when the response arrives: the next message may depend on it.
 *
 * @typedef {{ resolve: (result: any) => void, reject: (error: ClientError) => void }} Callbacks
 */

/** Ids start again on each connection. */
export class JsonRpcClient {
  /** @type {((text: string) => void) | undefined} */
  #write;
  /** @type {Map<number, Callbacks>} of requests without a response */
  #requests = new Map();
  #lastId = 0;

  /** @param {(text: string) => void} write */
  begin(write) {
    this.#write = write;
    this.#lastId = 0;
  }

  /** The connection has ended: no response will come. */
  end() {
    this.#write = undefined;
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const { reject } of requests) reject(new ClientError("lost", "The connection was lost."));
  }

  /** @param {string} method @param {object} params @param {Callbacks} callbacks */
  request(method, params, callbacks) {
    this.#lastId += 1;
    this.#requests.set(this.#lastId, callbacks);
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

  /** @param {{ id: number, result?: any, error?: RpcError }} response */
  receive({ id, result, error }) {
    const callbacks = this.#requests.get(id);
    this.#requests.delete(id);
    if (error) callbacks?.reject(commandFailed(error));
    else callbacks?.resolve(result);
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
