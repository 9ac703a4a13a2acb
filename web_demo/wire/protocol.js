/**
 * The client's side of AHP without a socket: frames in, frames out.
 *
 * A connection calls `connected`, feeds `receive` and calls `disconnected`; the rest is told by
 * events. What is watched and what is not confirmed outlives a connection: the next one resumes
 * where the last one broke off.
 */

/** @import {Client} from "./tab.js" */
/** @import {InitializeResult, Present, ReconnectResult, SessionSummary, SummaryChanges} from "./types.d.ts" */
import { Channels, ROOT } from "./channels.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { Exchange } from "./exchange.js";

export const VERSION = "0.3.0";
const NOT_FOUND = -32008;
const NOT_PERMITTED = -32009;
const INTERNAL_ERROR = -32603;

/**
 * @extends {Events<{
 *   live: undefined, lost: undefined, refused: WireError,
 *   added: SessionSummary, removed: string, summary: { session: string, changes: SummaryChanges },
 *   time: number, present: { channel: string, present: readonly Present[] },
 * }>}
 */
export class Protocol extends Events {
  isKnown = false;
  #client;
  /** @type {string | undefined} */ #name;
  #hasRenewed = false;

  /**
   * @param {Client} client
   * @param {() => number} clock
   */
  constructor(client, clock) {
    super();
    this.#client = client;
    this.exchange = new Exchange();
    this.channels = new Channels(client, this.exchange, clock);
  }

  get isLive() {
    return this.channels.isLive;
  }

  /**
   * What we want to be called. The host puts it beside what comes after it, so it goes before all
   * that we do, on every connection.
   *
   * @param {string | undefined} name
   */
  isCalled(name) {
    this.#name = name;
    if (this.isLive) this.#introduce();
  }

  #introduce() {
    if (this.#name) this.exchange.notify("presence/update", { channel: ROOT, name: this.#name });
  }

  // The connection's side

  /**
   * A new socket: the handshake comes first.
   *
   * @param {(text: string) => void} write
   */
  connected(write) {
    this.exchange.begin(write);
    this.#hasRenewed = false;
    if (this.isKnown) this.#reconnect();
    else this.#initialize();
  }

  /** What was asked is lost; what was done waits for the next connection. */
  disconnected() {
    this.channels.lost();
    this.exchange.end();
    this.emit("lost", undefined);
  }

  /** @param {string} text */
  receive(text) {
    const frame = JSON.parse(text);
    if (frame.method === undefined) {
      if (frame.id === null) console.warn("the host could not read a frame:", frame.error);
      else this.exchange.answer(frame);
      return;
    }
    this.#notified(frame.method, frame.params);
  }

  // The handshake

  #initialize() {
    const asked = this.channels.wanted;
    const params = {
      channel: ROOT,
      protocolVersions: [VERSION],
      clientId: this.#client.clientId,
      initialSubscriptions: asked,
    };
    this.exchange.ask("initialize", params, {
      resolve: (/** @type {InitializeResult} */ { snapshots, serverSeq }) => {
        this.isKnown = true;
        this.channels.restart(snapshots, serverSeq, asked);
        this.#goLive(asked);
      },
      reject: (error) => this.#turnedAway(error),
    });
  }

  #reconnect() {
    const asked = this.channels.wanted;
    const params = {
      channel: ROOT,
      clientId: this.#client.clientId,
      lastSeenServerSeq: this.channels.lastSeen,
      subscriptions: asked,
    };
    this.exchange.ask("reconnect", params, {
      resolve: (/** @type {ReconnectResult} */ result) => this.#resumed(result, asked),
      reject: (error) => {
        if (error.rpcCode === NOT_FOUND) this.#initialize();
        else this.#turnedAway(error);
      },
    });
  }

  /**
   * Our label may be somebody else's here, since the host no longer sees in us who we were: then we
   * take another one, and all that is not confirmed goes on under that.
   *
   * @param {WireError} error
   */
  #turnedAway(error) {
    if (error.rpcCode !== NOT_PERMITTED || this.#hasRenewed) {
      this.#refused(error);
      return;
    }
    this.#hasRenewed = true;
    this.#client.renew();
    this.#initialize();
  }

  /**
   * @param {ReconnectResult} result
   * @param {readonly string[]} asked
   */
  #resumed(result, asked) {
    if (result.type === "replay") {
      const unseen = asked.filter((uri) => this.#isUnseen(uri) && !result.missing.includes(uri));
      for (const uri of result.missing) this.channels.gone(uri);
      for (const envelope of result.actions) this.channels.deliver(envelope);
      this.#goLive(asked.filter((uri) => !unseen.includes(uri)));
    } else {
      const position = Math.max(0, ...result.snapshots.map((snapshot) => snapshot.fromSeq));
      this.channels.restart(result.snapshots, position, asked);
      this.#goLive(asked);
    }
  }

  /**
   * A channel of which we never had a state: a replay does not help, its snapshot must be asked for.
   *
   * @param {string} uri
   */
  #isUnseen(uri) {
    const mirror = this.channels.mirrors.get(uri);
    return mirror !== undefined && mirror.confirmed === undefined;
  }

  /** @param {readonly string[]} asked */
  #goLive(asked) {
    this.#introduce();
    this.channels.goLive();
    this.channels.settle(asked);
    this.emit("live", undefined);
  }

  /**
   * A handshake that failed: it broke off, could not be written down, or is refused for good.
   *
   * @param {WireError} error
   */
  #refused(error) {
    if (error.code === "lost") return;
    const isFinal = error.rpcCode !== INTERNAL_ERROR;
    this.emit("refused", isFinal ? new WireError("gaveUp", error.message) : error);
  }

  // What the host says

  /**
   * @param {string} method
   * @param {any} params
   */
  #notified(method, params) {
    switch (method) {
      case "action":
        if (params._meta?.at !== undefined) this.emit("time", params._meta.at);
        this.channels.deliver(params);
        break;
      case "root/sessionAdded":
        this.emit("added", params.summary);
        break;
      case "root/sessionRemoved":
        this.channels.gone(params.session);
        this.emit("removed", params.session);
        break;
      case "root/sessionSummaryChanged":
        this.emit("summary", params);
        break;
      case "presence/changed":
        this.emit("present", params);
        break;
      default: // kinds that this version does not know
    }
  }
}
