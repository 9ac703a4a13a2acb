/**
 * Which tab this is: an id that outlives a reload and is never that of another open tab.
 *
 * A duplicated tab begins with a copy of the storage of its original. So the id is in the storage
 * only while the page is not there: taken out when it opens, put back when it goes. The label that
 * the host knows the tab by is its own: a host may have given it to somebody else.
 */

import { newId } from "./ids.js";

const KEY = "session-server:tab";
const CHANNEL = "session-server:tabs";
/** How long open tabs have to say that they are there. */
const ROLL_CALL = 400;

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} TabStorage */
/** @typedef {{ readonly clientId: string, renew: () => void }} Client */
/** @typedef {{ id: string, clientId: string, seq: number }} Kept */

/** @implements {Client} */
export class Tab {
  #storage;
  /** @type {Set<string>} */ #others = new Set();
  /** @type {BroadcastChannel | undefined} */ #channel;
  /** @type {Promise<ReadonlySet<string>>} */ #called;

  /** @param {TabStorage | undefined} storage */
  constructor(storage) {
    this.#storage = storage;
    const { id, clientId, seq } = this.#take() ?? { ...fresh(), seq: 0 };
    this.id = id;
    this.clientId = clientId;
    /** The number of the last action that this tab did. */
    this.seq = seq;
    this.#called = this.#callRoll();
  }

  nextSeq() {
    this.seq += 1;
    return this.seq;
  }

  /** Another label: the host knows the old one as somebody else's. */
  renew() {
    this.clientId = newId();
  }

  /** The ids of the other tabs that are open. */
  get others() {
    return this.#called;
  }

  /** The page goes: whoever comes back to this tab takes over. */
  put() {
    const { id, clientId, seq } = this;
    try {
      this.#storage?.setItem(KEY, JSON.stringify({ id, clientId, seq }));
    } catch {
      // Without storage the tab is a new one next time.
    }
  }

  /** The page is back without having been loaded again; another one may have been here meanwhile. */
  taken() {
    const found = this.#take();
    if (found?.id === this.id) this.seq = Math.max(this.seq, found.seq);
  }

  close() {
    this.#channel?.close();
  }

  /** @returns {Kept | undefined} */
  #take() {
    try {
      const found = JSON.parse(this.#storage?.getItem(KEY) ?? "null");
      this.#storage?.removeItem(KEY);
      const isWhole = typeof found?.id === "string" && Number.isInteger(found.seq);
      return isWhole ? { clientId: found.id, ...found } : undefined;
    } catch {
      return undefined; // what cannot be read is not there
    }
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

function fresh() {
  const id = newId();
  return { id, clientId: id };
}
