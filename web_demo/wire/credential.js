/**
 * The token that opens the host's door: which one is in use, and what is left to try when the host
 * refuses it.
 *
 * The tab keeps the one it uses, for reloads. The browser keeps one for the whole host, for new tabs,
 * and one for each session that a link led to. A link never replaces what the browser kept for the
 * host: opening a guest's link must not make a guest of the owner. A new tab tries without first (on
 * one's own machine none is needed), then the host's, then that of the session it shows. What is
 * refused is forgotten everywhere.
 */

/** @import {WireError} from "./errors.js" */
/** @import {TabStorage} from "./tab.js" */
import { Events } from "./events.js";

const KEY = "session-server.token";
/** What a WebSocket offers next to the token; only this is answered. */
const SUBPROTOCOL = "ahp";
const TOKEN_SUBPROTOCOL = "bearer.";

/** @typedef {"needed" | "refused"} TokenProblem */
/**
 * Where the host speaks AHP, and the token of the link that led here, with the session it is for.
 *
 * @typedef {{ url: string, token?: string | undefined, session?: string | undefined }} Door
 */

/** @extends {Events<{ change: undefined, taken: undefined }>} */
export class Credential extends Events {
  /** @type {TokenProblem | undefined} why there is no way in */ problem;
  /** @type {Set<string | undefined>} */ #tried = new Set();
  /** @type {WireError | undefined} what the host said of a token */ #refusal;
  /** @type {string | undefined} where a new token is kept once it has opened the door */ #keepAs;
  #isPasted = false;
  #tab;
  #browser;

  /**
   * @param {Door} door
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
      this.#keepAs = keyOf(session);
    }
    /** @type {string | undefined} */
    this.token = given || read(tab);
  }

  /** What a WebSocket offers: a browser lets it set no header, and addresses are logged. */
  get subprotocols() {
    return this.token === undefined ? [] : [SUBPROTOCOL, TOKEN_SUBPROTOCOL + this.token];
  }

  /** Whether the browser keeps another token for the host than this tab uses. */
  get hasOther() {
    const kept = read(this.#browser);
    return this.token !== undefined && kept !== undefined && kept !== this.token;
  }

  /** Whether new tabs find the token in use, if only for the session that its link led to. */
  get isKept() {
    return keysOf(this.#browser).some((key) => read(this.#browser, key) === this.token);
  }

  /** From now on this tab uses what the browser keeps for the host. */
  useOther() {
    this.#begin();
    this.#become(read(this.#browser));
    write(this.#tab, this.token);
  }

  /** From now on the browser keeps for the host what this tab uses. */
  keep() {
    write(this.#browser, this.token);
  }

  /** Tells credentials apart in storage without being one. */
  get scope() {
    let hash = 0x811c9dc5;
    for (const letter of this.token ?? "") {
      hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
    }
    return hash.toString(36);
  }

  /** The door is open. */
  taken() {
    this.#begin();
    write(this.#tab, this.token);
    const isFree = this.#keepAs !== KEY || this.#isPasted || read(this.#browser) === undefined;
    if (this.#keepAs && isFree) write(this.#browser, this.token, this.#keepAs);
    this.#keepAs = undefined;
    this.emit("taken", undefined);
  }

  /**
   * The door stays shut.
   *
   * @param {WireError} error
   * @returns {WireError | undefined} nothing while there is another one to try
   */
  refused(error) {
    const { token } = this;
    this.#keepAs = undefined;
    this.#tried.add(token);
    if (token !== undefined) {
      this.#refusal = error;
      this.#drop(token);
    }
    const here = keyOf(globalThis.location?.hash);
    const next = [read(this.#tab), undefined, read(this.#browser), read(this.#browser, here)];
    const untried = next.filter((each) => !this.#tried.has(each));
    this.#become(untried[0]);
    if (untried.length) return undefined;
    return this.#giveUp(error);
  }

  /**
   * It was good once, and is not any more.
   *
   * @param {WireError} error
   */
  revoked(error) {
    if (this.token === undefined) return;
    this.#drop(this.token);
    this.#refusal = error;
    this.#become(undefined);
    this.#giveUp(error);
  }

  /** @param {string} text - a token, or a link that holds one */
  use(text) {
    this.#begin();
    const { token, session } = linkIn(text);
    this.#keepAs = keyOf(session);
    this.#isPasted = true;
    this.#become(token);
    write(this.#tab, this.token);
  }

  /** The one in use; what else the browser keeps stays. */
  forget() {
    this.#begin();
    if (this.token !== undefined) this.#drop(this.token);
    this.#become(undefined);
  }

  /** @param {string | undefined} token */
  #become(token) {
    this.token = token;
    this.emit("change", undefined);
  }

  /** All that is kept may be tried again. */
  #begin() {
    this.#tried.clear();
    this.#refusal = undefined;
    this.problem = undefined;
  }

  /** @param {WireError} error */
  #giveUp(error) {
    const said = this.#refusal ?? error;
    const problem = this.#refusal ? "refused" : "needed";
    this.#begin();
    this.problem = problem;
    return said;
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
 * A token, or a link that holds one.
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
 * What can stand in a header and a subprotocol. No token has other letters, so what was pasted by
 * mistake stays wrong.
 *
 * @param {string} token
 */
const sendable = (token) => token.replace(/[^\w.~-]/g, "!");

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Where a token is kept: that of a link to a session, or that for the whole host.
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

/**
 * @param {TabStorage | undefined} storage
 * @param {string} [key]
 * @returns {string | undefined}
 */
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
    // Where nothing can be kept, it lasts as long as the page.
  }
}
