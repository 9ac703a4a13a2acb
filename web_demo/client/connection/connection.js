/**
 * Keeps one protocol connected: opens a socket, detects a dead one, and reconnects with backoff, or
 * at once when the page becomes visible or the network returns.
 */

/** @import { Credential } from "./credential.js" */
/** @import { ClientError } from "../errors.js" */
/** @import { Protocol } from "./protocol.js" */
import { Events } from "../events.js";
import { Backoff, finalError, Keepalive, refusalReason } from "./retry-policy.js";

/** A socket that takes longer than this to open may be replaced on the next `retry`. */
const SLOW = 3_000;

/**
 * @typedef {{
 *   openSocket?: (url: string, subprotocols: string[]) => WebSocket, quiet?: number, timeout?: number,
 * }} ConnectionOptions
 */

/** @extends {Events<{ change: undefined }>} */
export class Connection extends Events {
  /** @type {ClientError | undefined} */ error;
  /** Failed attempts since the last connection. */
  failures = 0;
  isWanted = false;
  #protocol;
  #openSocket;
  #backoff = new Backoff();
  #keepalive;
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
    this.#openSocket = options.openSocket ?? ((url, subprotocols) => new WebSocket(url, subprotocols));
    this.#keepalive = new Keepalive(protocol, () => this.#end(4000), options);
    protocol.on("live", () => this.#connected());
    protocol.on("refused", (error) => this.#refused(error));
  }

  start() {
    if (this.isWanted) return;
    this.isWanted = true;
    this.error = undefined;
    this.#open();
  }

  /** Until it is started again. */
  stop() {
    this.isWanted = false;
    this.pause();
  }

  /** Until the next `retry`: browsers do not keep a page with an open socket in the back/forward
   * cache. */
  pause() {
    this.#stopTimers();
    this.#drop(1000);
    this.emit("change", undefined);
  }

  /** Reconnects now, also after a fatal error. A dead connection is replaced. */
  retry() {
    if (!this.isWanted) this.start();
    else if (this.#protocol.isLive) this.#keepalive.ping();
    else if (!this.#socket || Date.now() - this.#openedAt > SLOW) this.#openNow();
  }

  /** Starts over, for example with another token. */
  restart() {
    this.stop();
    this.failures = 0;
    this.#backoff.reset();
    this.start();
  }

  // One socket

  #openNow() {
    this.#backoff.reset();
    this.#stopTimers();
    this.#drop();
    this.#open();
  }

  #open() {
    const socket = this.#openSocket(this.credential.address, this.credential.subprotocols);
    this.#socket = socket;
    this.#hasOpened = false;
    this.#openedAt = Date.now();
    this.#keepalive.start();
    socket.onopen = () => this.#opened(socket);
    socket.onmessage = ({ data }) => this.#received(data);
    socket.onclose = ({ code, reason }) => this.#end(code, reason);
    // Not every engine fires `close` for a socket that never opened.
    socket.onerror = () => this.#hasOpened || this.#end(1006);
    this.emit("change", undefined);
  }

  /** @param {WebSocket} socket */
  #opened(socket) {
    this.#hasOpened = true;
    this.#openedAt = Date.now();
    this.credential.accepted();
    this.#protocol.connected((text) => {
      if (socket.readyState !== socket.OPEN) return;
      socket.send(text);
      this.#keepalive.sent();
    });
  }

  /** @param {unknown} data */
  #received(data) {
    this.#keepalive.received();
    try {
      this.#protocol.receive(String(data));
    } catch (error) {
      console.error("the host sent an invalid frame:", error);
      this.#end(4000);
    }
  }

  #connected() {
    this.failures = 0;
    this.#stopTimers();
    this.#keepalive.wait();
    this.emit("change", undefined);
  }

  /** @param {ClientError} error */
  #refused(error) {
    if (error.code === "fatal") this.#giveUp(error);
    else this.#end(4000);
  }

  /**
   * The connection has ended, whether or not its socket has noticed.
   *
   * @param {number} code
   * @param {string} [reason]
   */
  #end(code, reason = "") {
    const lasted = this.#hasOpened ? Date.now() - this.#openedAt : 0;
    const wasOpen = this.#hasOpened;
    this.#stopTimers();
    this.#drop();
    this.failures += 1;
    const final = finalError(code, reason);
    if (final?.code === "unauthorized") this.credential.revoked(final);
    if (final) {
      this.#giveUp(final);
      return;
    }
    this.#retryTimer = setTimeout(() => this.#open(), this.#backoff.nextDelay(lasted));
    this.emit("change", undefined);
    if (!wasOpen) void this.#findReason();
  }

  async #findReason() {
    const { token, address } = this.credential;
    const error = await refusalReason(address, token);
    const isObsolete = !this.isWanted || this.#protocol.isLive || token !== this.credential.token;
    if (!error || isObsolete) return;
    const final = error.code === "unauthorized" ? this.credential.refused(error) : error;
    if (final) this.#giveUp(final);
    else this.#openNow();
  }

  /** @param {ClientError} error */
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

  #stopTimers() {
    clearTimeout(this.#retryTimer);
    this.#keepalive.stop();
  }
}
