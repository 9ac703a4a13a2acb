/**
 * One socket after another, for one protocol: connects, notices when a connection is dead, and
 * comes back with growing patience, or at once when the page is looked at or the network returns.
 */

/** @import {Protocol} from "./protocol.js" */
import { ROOT } from "./channels.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { BackOff, finalError, reasonAt } from "./reconnecting.js";

const HANDSHAKE = 10_000;
/** Without a word from the host for this long, it is asked whether it is there. */
const QUIET = 20_000;
const PATIENCE = 8_000;
/** A timer that fires this late was held up with everything else, and proves nothing. */
const HELD_UP = 2_000;

/**
 * @typedef {{
 *   openSocket?: (url: string) => WebSocket,
 *   explain?: (url: string) => Promise<WireError | undefined>,
 *   chance?: () => number, quiet?: number, patience?: number,
 * }} ConnectionOptions
 */

/** @extends {Events<{ change: undefined }>} */
export class Connection extends Events {
  /** @type {WireError | undefined} */ error;
  /** @type {number | undefined} */ nextTryAt;
  /** Tries that failed since there was a connection. */
  failures = 0;
  #url;
  #protocol;
  #options;
  #backOff;
  /** @type {WebSocket | undefined} */ #socket;
  #openedAt = 0;
  #heardAt = 0;
  #hasOpened = false;
  isWanted = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #retryTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #watchTimer;

  /**
   * @param {Protocol} protocol
   * @param {string} url
   * @param {ConnectionOptions} [options]
   */
  constructor(protocol, url, options = {}) {
    super();
    this.#protocol = protocol;
    this.#url = url;
    this.#options = options;
    this.#backOff = new BackOff(options.chance);
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

  /** Now instead of later; also after having given up. */
  retry() {
    if (!this.isWanted) this.start();
    else if (this.#socket) this.probe();
    else {
      this.#backOff.reset();
      this.#rest();
      this.#open();
    }
  }

  /** Makes sure that the host is still there; a connection that does not answer is replaced. */
  probe() {
    if (!this.#protocol.isLive) return;
    this.#protocol.exchange.ask("ping", { channel: ROOT }, { resolve() {}, reject() {} });
    this.#watch(Date.now(), this.#options.patience ?? PATIENCE);
  }

  // One socket

  #open() {
    const openSocket = this.#options.openSocket ?? ((url) => new WebSocket(url));
    const socket = openSocket(this.#url);
    this.#socket = socket;
    this.#hasOpened = false;
    this.#openedAt = Date.now();
    this.nextTryAt = undefined;
    this.#watch(this.#openedAt, HANDSHAKE);
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
    this.#protocol.connected((text) => {
      if (socket.readyState === socket.OPEN) socket.send(text);
    });
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} data
   */
  #hears(socket, data) {
    if (socket !== this.#socket) return;
    this.#heardAt = Date.now();
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
    this.#listen();
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
    const error = await (this.#options.explain ?? reasonAt)(this.#url);
    if (error && this.isWanted && !this.#protocol.isLive) this.#giveUp(error);
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

  // Patience

  #rest() {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#watchTimer);
    this.nextTryAt = undefined;
  }

  /** Listens for silence. */
  #listen() {
    clearTimeout(this.#watchTimer);
    const quiet = this.#options.quiet ?? QUIET;
    const left = Math.max(0, this.#heardAt + quiet - Date.now());
    this.#watchTimer = setTimeout(() => {
      if (Date.now() - this.#heardAt >= quiet) this.probe();
      else this.#listen();
    }, left);
  }

  /**
   * Ends the connection unless something is heard in time.
   *
   * @param {number} since
   * @param {number} patience
   */
  #watch(since, patience) {
    clearTimeout(this.#watchTimer);
    const due = Date.now() + patience;
    this.#watchTimer = setTimeout(() => {
      const isLive = this.#protocol.isLive;
      if (isLive && this.#heardAt >= since) this.#listen();
      else if (Date.now() - due > HELD_UP) this.#watch(since, patience);
      else this.#end(4000);
    }, patience);
  }
}
