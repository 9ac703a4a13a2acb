/**
 * The token that opens the host's door: which one is in use, and what is left to try when the host
 * refuses it.
 *
 * It is kept in the tab, for reloads, and in the browser, for new tabs. A new tab tries without
 * first: on one's own machine none is needed, and a link that its owner tried out once should not
 * take its owner's place. What is refused is forgotten everywhere.
 */

/** @import {WireError} from "./errors.js" */
/** @import {TabStorage} from "./tab.js" */
import { Events } from "./events.js";

const KEY = "session-server.token";
const PARAMETER = "tkn";

/** @typedef {"needed" | "refused"} TokenProblem */

/** @extends {Events<{ change: undefined, taken: undefined }>} */
export class Credential extends Events {
  /** @type {TokenProblem | undefined} why there is no way in */ problem;
  /** @type {Set<string | undefined>} */ #tried = new Set();
  /** @type {WireError | undefined} what the host said of a token */ #refusal;
  #url;
  #tab;
  #browser;

  /**
   * @param {string} url - where the host speaks AHP; a token in it comes before all that is kept
   * @param {TabStorage | undefined} tab
   * @param {TabStorage | undefined} browser
   */
  constructor(url, tab, browser) {
    super();
    this.#url = url;
    this.#tab = tab;
    this.#browser = browser;
    const given = new URL(url).searchParams.get(PARAMETER);
    if (given) write(tab, given);
    /** @type {string | undefined} */
    this.token = given || read(tab);
  }

  /** Where to knock, with what. */
  get address() {
    const address = new URL(this.#url);
    address.searchParams.delete(PARAMETER);
    if (this.token !== undefined) address.searchParams.set(PARAMETER, this.token);
    return address.href;
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
    if (this.token !== undefined) {
      write(this.#tab, this.token);
      write(this.#browser, this.token);
    }
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
    this.#tried.add(token);
    if (token !== undefined) {
      this.#refusal = error;
      this.#drop(token);
    }
    const next = [read(this.#tab), undefined, read(this.#browser)];
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
    this.#become(tokenIn(text));
    write(this.#tab, this.token);
  }

  forget() {
    this.#begin();
    write(this.#tab, undefined);
    write(this.#browser, undefined);
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
      if (read(storage) === token) write(storage, undefined);
    }
  }
}

/**
 * @param {string} text
 * @returns {string | undefined}
 */
function tokenIn(text) {
  const trimmed = text.trim();
  const [, inLink] = /[?&]tkn=([^&#\s]+)/.exec(trimmed) ?? [];
  return (inLink === undefined ? trimmed : decodeURIComponent(inLink)) || undefined;
}

/**
 * @param {TabStorage | undefined} storage
 * @returns {string | undefined}
 */
function read(storage) {
  try {
    return storage?.getItem(KEY) || undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {TabStorage | undefined} storage
 * @param {string | undefined} token
 */
function write(storage, token) {
  try {
    if (token === undefined) storage?.removeItem(KEY);
    else storage?.setItem(KEY, token);
  } catch {
    // Where nothing can be kept, it lasts as long as the page.
  }
}
