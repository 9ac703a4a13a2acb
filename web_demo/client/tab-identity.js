/**
 * The identity of this tab: an id that survives a reload and that no other open tab has.
 *
 * A duplicated tab starts with a copy of the original's storage, so the id is in storage only while
 * the page is closed: removed when it opens, saved when it closes. `clientId`, which the host
 * knows, may change: another principal may own the old one.
 */

const KEY = "session-server:tab";
const CHANNEL = "session-server:tabs";
/** How long open tabs have to answer. */
const ANSWER_TIME = 400;

/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} TabStorage */
/** @typedef {{ readonly clientId: string, renew: () => void }} Client */
/** @typedef {{ id: string, clientId: string, seq: number }} Identity */

/** @implements {Client} */
export class Tab {
  #storage;
  /** @type {BroadcastChannel | undefined} */ #channel;

  /** @param {TabStorage | undefined} storage */
  constructor(storage) {
    this.#storage = storage;
    const { id = newId(), clientId = id, seq = 0 } = this.#claim() ?? {};
    this.id = id;
    this.clientId = clientId;
    /** The sequence number of the last action of this tab. */
    this.seq = seq;
    /** @type {Promise<ReadonlySet<string>>} the ids of the other tabs that are open */
    this.others = this.#findOthers();
  }

  nextSeq() {
    this.seq += 1;
    return this.seq;
  }

  /** A new client id: the old one belongs to another principal. */
  renew() {
    this.clientId = newId();
  }

  /** The page closes; a reload continues with this identity. */
  save() {
    const { id, clientId, seq } = this;
    try {
      this.#storage?.setItem(KEY, JSON.stringify({ id, clientId, seq }));
    } catch {
      // Without storage a reload gets a new identity.
    }
  }

  /** The page is back from the cache; another page may have used this tab meanwhile. */
  resume() {
    const found = this.#claim();
    if (found?.id === this.id) this.seq = Math.max(this.seq, found.seq ?? 0);
  }

  close() {
    this.#channel?.close();
  }

  /** @returns {Partial<Identity> | undefined} */
  #claim() {
    try {
      const found = JSON.parse(this.#storage?.getItem(KEY) ?? "null");
      this.#storage?.removeItem(KEY);
      const isWhole = typeof found?.id === "string" && Number.isInteger(found.seq);
      return isWhole ? found : undefined;
    } catch {
      return undefined; // unreadable entries are ignored
    }
  }

  async #findOthers() {
    /** @type {Set<string>} */
    const found = new Set();
    if (typeof BroadcastChannel === "undefined") return found;
    const channel = new BroadcastChannel(CHANNEL);
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      if (data?.here) found.add(data.here);
      if (data?.asks) channel.postMessage({ here: this.id });
    };
    channel.postMessage({ asks: true, here: this.id });
    await new Promise((resolve) => setTimeout(resolve, ANSWER_TIME));
    return found;
  }
}

// A unique id, also on plain HTTP, where `crypto.randomUUID` is missing.

const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz";
const LENGTH = 20;

/** @returns {string} */
export const newId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(LENGTH)), (byte) => LETTERS[byte % 36]).join("");
