/**
 * One socket after another, for one protocol: connects, notices when a connection is dead, and
 * comes back with growing patience, or at once when the page is looked at or the network returns.
 */

/** @import {Credential} from "./credential.js" */
/** @import {Protocol} from "./protocol.js" */
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { Listening } from "./listening.js";
import { BackOff, finalError, reasonAt } from "./reconnecting.js";

/** A socket that takes longer than this to open may be begun anew when somebody looks. */
const SLOW = 3_000;

/**
 * @typedef {{
 *   openSocket?: (url: string, subprotocols: string[]) => WebSocket,
 *   explain?: (url: string, token?: string) => Promise<WireError | undefined>,
 *   chance?: () => number, quiet?: number, patience?: number,
 * }} ConnectionOptions
 */

/** @extends {Events<{ change: undefined }>} */
export class Connection extends Events {
  /** @type {WireError | undefined} */ error;
  /** @type {number | undefined} */ nextTryAt;
  /** Tries that failed since there was a connection. */
  failures = 0;
  isWanted = false;
  #protocol;
  #options;
  #backOff;
  #listening;
  /** @type {WebSocket | undefined} */ #socket;
  #openedAt = 0;
  #hasOpened = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #retryTimer;

  /**
   * @param {Protocol} protocol
   * @param {Credential} credential
   * @param {ConnectionOptions} [options]
   */
  constructor(protocol, credential, options = {}) {
    super();
    this.#protocol = protocol;
    this.credential = credential;
    this.#options = options;
    this.#backOff = new BackOff(options.chance);
    this.#listening = new Listening(protocol, () => this.#end(4000), options);
    protocol.on("live", () => this.#isLive());
    protocol.on("refused", (error) => this.#isRefused(error));
  }

  start() {
    if (this.isWanted) return;
    this.isWanted = true;
    this.error = undefined;
    this.#open();
  }

  /** For good, until it is started again. */
  stop() {
    this.isWanted = false;
    this.#rest();
    this.#drop(1000);
    this.emit("change", undefined);
  }

  /** Until somebody tries again: a browser keeps no page in its memory that has a socket. */
  pause() {
    this.#rest();
    this.#drop(1000);
    this.emit("change", undefined);
  }

  /** Now instead of later; also after having given up. A connection that is dead is replaced. */
  retry() {
    if (!this.isWanted) this.start();
    else if (this.#protocol.isLive) this.#listening.ask();
    else if (!this.#socket || Date.now() - this.#openedAt > SLOW) this.#openNow();
  }

  /** From the beginning, as with another credential. */
  restart() {
    this.stop();
    this.failures = 0;
    this.#backOff.reset();
    this.start();
  }

  // One socket

  #openNow() {
    this.#backOff.reset();
    this.#rest();
    this.#drop();
    this.#open();
  }

  #open() {
    const openSocket = this.#options.openSocket ?? ((url, offered) => new WebSocket(url, offered));
    const socket = openSocket(this.credential.address, this.credential.subprotocols);
    this.#socket = socket;
    this.#hasOpened = false;
    this.#openedAt = Date.now();
    this.nextTryAt = undefined;
    this.#listening.begin();
    socket.onopen = () => this.#isOpen(socket);
    socket.onmessage = ({ data }) => this.#hears(socket, data);
    socket.onclose = ({ code, reason }) => this.#hasClosed(socket, code, reason);
    socket.onerror = () => this.#hasFailed(socket);
    this.emit("change", undefined);
  }

  /** @param {WebSocket} socket */
  #isOpen(socket) {
    if (socket !== this.#socket) return;
    this.#hasOpened = true;
    this.#openedAt = Date.now();
    this.credential.taken();
    this.#protocol.connected((text) => {
      if (socket.readyState !== socket.OPEN) return;
      socket.send(text);
      this.#listening.spoke();
    });
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} data
   */
  #hears(socket, data) {
    if (socket !== this.#socket) return;
    this.#listening.heard();
    try {
      this.#protocol.receive(String(data));
    } catch (error) {
      console.error("the host said something that is not AHP:", error);
      this.#end(4000);
    }
  }

  #isLive() {
    this.failures = 0;
    this.#rest();
    this.#listening.listen();
    this.emit("change", undefined);
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   * @param {string} reason
   */
  #hasClosed(socket, code, reason) {
    if (socket !== this.#socket) return;
    this.#end(code, reason);
  }

  /**
   * Not every engine says that a socket is closed which never was open.
   *
   * @param {WebSocket} socket
   */
  #hasFailed(socket) {
    if (socket === this.#socket && !this.#hasOpened) this.#end(1006);
  }

  /** @param {WireError} error */
  #isRefused(error) {
    if (error.code === "gaveUp") this.#giveUp(error);
    else this.#end(4000);
  }

  /**
   * The connection is over, whether or not its socket knows.
   *
   * @param {number} code
   * @param {string} [reason]
   */
  #end(code, reason = "") {
    const lasted = this.#hasOpened ? Date.now() - this.#openedAt : 0;
    const wasLetIn = this.#hasOpened;
    this.#rest();
    this.#drop();
    this.failures += 1;
    const final = finalError(code, reason);
    if (final?.code === "turnedAway") this.credential.revoked(final);
    if (final) this.#giveUp(final);
    else this.#comeBack(this.#backOff.nextDelay(lasted), wasLetIn);
  }

  /**
   * @param {number} delay
   * @param {boolean} wasLetIn
   */
  #comeBack(delay, wasLetIn) {
    this.nextTryAt = Math.round(Date.now() + delay);
    this.#retryTimer = setTimeout(() => this.#open(), delay);
    this.emit("change", undefined);
    if (!wasLetIn) void this.#askWhy();
  }

  async #askWhy() {
    const { token, address } = this.credential;
    const error = await (this.#options.explain ?? reasonAt)(address, token);
    const isMoot = !this.isWanted || this.#protocol.isLive || token !== this.credential.token;
    if (!error || isMoot) return;
    const final = error.code === "turnedAway" ? this.credential.refused(error) : error;
    if (final) {
      this.#giveUp(final);
      return;
    }
    this.#openNow();
  }

  /** @param {WireError} error */
  #giveUp(error) {
    this.error = error;
    this.stop();
  }

  /** @param {number} [code] */
  #drop(code) {
    const socket = this.#socket;
    if (!socket) return;
    this.#socket = undefined;
    socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
    socket.close(code);
    this.#protocol.disconnected();
  }

  #rest() {
    clearTimeout(this.#retryTimer);
    this.#listening.rest();
    this.nextTryAt = undefined;
  }
}
