/**
 * The access token: which one is in use, and what else to try when the host refuses it.
 *
 * The tab stores the one it uses, for reloads. The browser stores one for the whole host, for new
 * tabs, and one for each session that a link led to. A link never replaces the one stored for the
 * host: opening a guest's link must not make a guest of the owner. A new tab tries without first (on
 * one's own machine none is needed), then the host's, then that of the session it shows. What is
 * refused is forgotten everywhere.
 */

/** @import { ClientError } from "../errors.js" */
/** @import { TabStorage } from "../tab-identity.js" */
import { decoded } from "../browser.js";
import { Events } from "../events.js";

const KEY = "session-server.token";
/** Offered next to the token; only this one is accepted by the host. */
const SUBPROTOCOL = "ahp";
const TOKEN_SUBPROTOCOL = "bearer.";

/** @typedef {"needed" | "refused"} TokenProblem */
/**
 * The address of the WebSocket, and the token of the link that was opened, with the session it is
 * for.
 *
 * @typedef {{ url: string, token?: string | undefined, session?: string | undefined }} Endpoint
 */

/** @extends {Events<{ change: undefined, accepted: undefined }>} */
export class Credential extends Events {
  /** @type {TokenProblem | undefined} why the host refuses access */ problem;
  /** @type {Set<string | undefined>} */ #tried = new Set();
  /** @type {ClientError | undefined} why the host refused a token */ #refusal;
  /** @type {string | undefined} the storage key for a new token, once the host accepts it */ #storeAs;
  #isPasted = false;
  #tab;
  #browser;

  /**
   * @param {Endpoint} endpoint
   * @param {TabStorage | undefined} tab
   * @param {TabStorage | undefined} browser
   */
  constructor({ url, token, session }, tab, browser) {
    super();
    this.address = url;
    this.#tab = tab;
    this.#browser = browser;
    const given = token && sendable(token);
    if (given) {
      write(tab, given);
      this.#storeAs = keyOf(session);
    }
    /** @type {string | undefined} */
    this.token = given || read(tab);
  }

  /** Browsers cannot set headers on a WebSocket, and addresses are logged. */
  get subprotocols() {
    return this.token === undefined ? [] : [SUBPROTOCOL, TOKEN_SUBPROTOCOL + this.token];
  }

  /** Whether the browser has stored another token for the host than this tab uses. */
  get hasOther() {
    const stored = read(this.#browser);
    return this.token !== undefined && stored !== undefined && stored !== this.token;
  }

  /** Whether new tabs find the token in use, if only for the session of its link. */
  get isStored() {
    return keysOf(this.#browser).some((key) => read(this.#browser, key) === this.token);
  }

  /** Switches this tab to the token that the browser has stored for the host. */
  useOther() {
    this.#resetAttempts();
    this.#setToken(read(this.#browser));
    write(this.#tab, this.token);
  }

  /** Stores the token of this tab in the browser, for the host. */
  store() {
    write(this.#browser, this.token);
  }

  /** Identifies the token in storage without containing it. */
  get scope() {
    let hash = 0x811c9dc5;
    for (const letter of this.token ?? "") {
      hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
    }
    return hash.toString(36);
  }

  /** The host accepted it. */
  accepted() {
    this.#resetAttempts();
    write(this.#tab, this.token);
    const isFree = this.#storeAs !== KEY || this.#isPasted || read(this.#browser) === undefined;
    if (this.#storeAs && isFree) write(this.#browser, this.token, this.#storeAs);
    this.#storeAs = undefined;
    this.emit("accepted", undefined);
  }

  /**
   * The host refused it.
   *
   * @param {ClientError} error
   * @returns {ClientError | undefined} `undefined` while there is another one to try
   */
  refused(error) {
    const { token } = this;
    this.#storeAs = undefined;
    this.#tried.add(token);
    if (token !== undefined) {
      this.#refusal = error;
      this.#drop(token);
    }
    const here = keyOf(globalThis.location?.hash);
    const next = [read(this.#tab), undefined, read(this.#browser), read(this.#browser, here)];
    const untried = next.filter((each) => !this.#tried.has(each));
    this.#setToken(untried[0]);
    if (untried.length) return undefined;
    return this.#giveUp(error);
  }

  /**
   * The host revoked it while it was in use.
   *
   * @param {ClientError} error
   */
  revoked(error) {
    if (this.token === undefined) return;
    this.#drop(this.token);
    this.#refusal = error;
    this.#setToken(undefined);
    this.#giveUp(error);
  }

  /** @param {string} text - a token, or a link that holds one */
  use(text) {
    this.#resetAttempts();
    const { token, session } = linkIn(text);
    this.#storeAs = keyOf(session);
    this.#isPasted = true;
    this.#setToken(token);
    write(this.#tab, this.token);
  }

  /** Forgets the one in use, and no other. */
  forget() {
    this.#resetAttempts();
    if (this.token !== undefined) this.#drop(this.token);
    this.#setToken(undefined);
  }

  /** @param {string | undefined} token */
  #setToken(token) {
    this.token = token;
    this.emit("change", undefined);
  }

  /** Everything may be tried again. */
  #resetAttempts() {
    this.#tried.clear();
    this.#refusal = undefined;
    this.problem = undefined;
  }

  /** @param {ClientError} error */
  #giveUp(error) {
    const reason = this.#refusal ?? error;
    const problem = this.#refusal ? "refused" : "needed";
    this.#resetAttempts();
    this.problem = problem;
    return reason;
  }

  /** @param {string} token */
  #drop(token) {
    for (const storage of [this.#tab, this.#browser]) {
      for (const key of keysOf(storage)) {
        if (read(storage, key) === token) write(storage, undefined, key);
      }
    }
  }
}

/**
 * A token, or a link that contains one.
 *
 * @param {string} text
 */
function linkIn(text) {
  const trimmed = text.trim();
  const [, inLink, session] = /[?&]tkn=([^&#\s]+)[^#]*(#.*)?/.exec(trimmed) ?? [];
  const token = sendable(inLink === undefined ? trimmed : decoded(inLink));
  return { token: token || undefined, session };
}

/**
 * Replaces what is not allowed in a header or subprotocol. Tokens have no such characters, so a
 * wrong paste stays wrong.
 *
 * @param {string} token
 */
const sendable = (token) => token.replace(/[^\w.~-]/g, "!");

/**
 * The storage key: one for the whole host, and one per session for links.
 *
 * @param {string | undefined} hash - of an address within the page
 */
function keyOf(hash) {
  const [, session] = /^#\/s\/([^/]+)/.exec(hash ?? "") ?? [];
  return session === undefined ? KEY : `${KEY}:${session}`;
}

/** @param {TabStorage | undefined} storage */
function keysOf(storage) {
  try {
    const names = Array.from({ length: storage?.length ?? 0 }, (_, at) => storage?.key(at) ?? "");
    return names.filter((name) => name === KEY || name.startsWith(`${KEY}:`));
  } catch {
    return [];
  }
}

/** @param {TabStorage | undefined} storage @param {string} [key] @returns {string | undefined} */
function read(storage, key = KEY) {
  try {
    return storage?.getItem(key) || undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {TabStorage | undefined} storage
 * @param {string | undefined} token
 * @param {string} [key]
 */
function write(storage, token, key = KEY) {
  try {
    if (token === undefined) storage?.removeItem(key);
    else storage?.setItem(key, token);
  } catch {
    // Without storage it lasts until the page closes.
  }
}
