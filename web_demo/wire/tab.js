/**
 * Which tab this is: an id that outlives a reload and is never that of another open tab.
 *
 * A duplicated tab begins with a copy of the storage of its original. So the id is in the storage
 * only while the page is not there: taken out when it opens, put back when it goes.
 */

import { newId } from "./ids.js";

const KEY = "session-server:tab";
const CHANNEL = "session-server:tabs";
/** How long open tabs have to say that they are there. */
const ROLL_CALL = 400;

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} TabStorage */

export class Tab {
  #storage;
  /** @type {Set<string>} */ #others = new Set();
  /** @type {BroadcastChannel | undefined} */ #channel;
  /** @type {Promise<ReadonlySet<string>>} */ #called;

  /** @param {TabStorage | undefined} storage */
  constructor(storage) {
    this.#storage = storage;
    const { id, seq } = this.#take();
    this.id = id;
    /** The number of the last action that this tab did. */
    this.seq = seq;
    this.#called = this.#callRoll();
  }

  nextSeq() {
    this.seq += 1;
    return this.seq;
  }

  /** The ids of the other tabs that are open. */
  get others() {
    return this.#called;
  }

  /** The page goes: whoever comes back to this tab takes over. */
  put() {
    try {
      this.#storage?.setItem(KEY, JSON.stringify({ id: this.id, seq: this.seq }));
    } catch {
      // Without storage the tab is a new one next time.
    }
  }

  /** The page is back without having been loaded again. */
  taken() {
    this.#take();
  }

  close() {
    this.#channel?.close();
  }

  /** @returns {{ id: string, seq: number }} */
  #take() {
    try {
      const found = JSON.parse(this.#storage?.getItem(KEY) ?? "null");
      this.#storage?.removeItem(KEY);
      if (typeof found?.id === "string" && Number.isInteger(found.seq)) return found;
    } catch {
      // What cannot be read is not there.
    }
    return { id: newId(), seq: 0 };
  }

  async #callRoll() {
    if (typeof BroadcastChannel === "undefined") return this.#others;
    const channel = new BroadcastChannel(CHANNEL);
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      if (data?.here) this.#others.add(data.here);
      if (data?.calls) channel.postMessage({ here: this.id });
    };
    channel.postMessage({ calls: true, here: this.id });
    await new Promise((resolve) => setTimeout(resolve, ROLL_CALL));
    return this.#others;
  }
}
