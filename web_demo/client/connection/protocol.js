/**
 * The client's side of AHP without a socket: frames in, frames out.
 *
 * A connection calls `connected`, `receive` and `disconnected`; the rest are events. Subscriptions
 * and unconfirmed actions outlive a connection: the next one resumes where the last one ended.
 */

/** @import { Client } from "../tab-identity.js" */
/**
 * @import {
 *   InitializeResult, Present, ReconnectResult, SessionSummary, SummaryChanges,
 * } from "../types.d.ts"
 */
import { ClientError } from "../errors.js";
import { Events } from "../events.js";
import { JsonRpcClient } from "./json-rpc.js";
import { Subscriptions, ROOT } from "./subscriptions.js";

export const VERSION = "0.3.0";
const NOT_FOUND = -32008;
const NOT_PERMITTED = -32009;
const INTERNAL_ERROR = -32603;

/**
 * @extends {Events<{
 *   live: undefined, lost: undefined, refused: ClientError,
 *   added: SessionSummary, removed: string, summary: { session: string, changes: SummaryChanges },
 *   time: number, present: { channel: string, present: readonly Present[] },
 * }>}
 */
export class Protocol extends Events {
  isKnown = false;
  #client;
  /** @type {string | undefined} */ #name;
  #hasNewClientId = false;

  /** @param {Client} client @param {() => number} clock */
  constructor(client, clock) {
    super();
    this.#client = client;
    this.rpc = new JsonRpcClient();
    this.subscriptions = new Subscriptions(client, this.rpc, clock);
  }

  get isLive() {
    return this.subscriptions.isLive;
  }

  /**
   * Our display name. The host adds it to what comes after it, so it is sent first on every
   * connection.
   *
   * @param {string | undefined} name
   */
  setName(name) {
    this.#name = name;
    if (this.isLive) this.#sendName();
  }

  #sendName() {
    if (this.#name) this.rpc.notify("presence/update", { channel: ROOT, name: this.#name });
  }

  // Used by the connection

  /**
   * A new socket: the handshake comes first.
   *
   * @param {(text: string) => void} write
   */
  connected(write) {
    this.rpc.begin(write);
    this.#hasNewClientId = false;
    if (this.isKnown) this.#reconnect();
    else this.#initialize();
  }

  /** Open commands fail; unconfirmed actions wait for the next connection. */
  disconnected() {
    this.subscriptions.lost();
    this.rpc.end();
    this.emit("lost", undefined);
  }

  /** @param {string} text */
  receive(text) {
    const frame = JSON.parse(text);
    if (frame.method === undefined) {
      if (frame.id === null) console.warn("the host could not parse a frame:", frame.error);
      else this.rpc.receive(frame);
      return;
    }
    this.#notification(frame.method, frame.params);
  }

  // The handshake

  #initialize() {
    const requested = this.subscriptions.wanted;
    const params = {
      channel: ROOT,
      protocolVersions: [VERSION],
      clientId: this.#client.clientId,
      initialSubscriptions: requested,
    };
    this.rpc.request("initialize", params, {
      resolve: (/** @type {InitializeResult} */ { snapshots, serverSeq }) => {
        this.isKnown = true;
        this.subscriptions.restart(snapshots, serverSeq, requested);
        this.#goLive(requested);
      },
      reject: (error) => this.#handshakeFailed(error),
    });
  }

  #reconnect() {
    const requested = this.subscriptions.wanted;
    const params = {
      channel: ROOT,
      clientId: this.#client.clientId,
      lastSeenServerSeq: this.subscriptions.lastSeen,
      subscriptions: requested,
    };
    this.rpc.request("reconnect", params, {
      resolve: (/** @type {ReconnectResult} */ result) => this.#resumed(result, requested),
      reject: (error) => {
        if (error.rpcCode === NOT_FOUND) this.#initialize();
        else this.#handshakeFailed(error);
      },
    });
  }

  /**
   * By a lost connection, temporarily, or for good. If our client id belongs to another principal,
   * for example after a change of token, a new one is taken, and what is not confirmed is sent under
   * that.
   *
   * @param {ClientError} error
   */
  #handshakeFailed(error) {
    if (error.rpcCode === NOT_PERMITTED && !this.#hasNewClientId) {
      this.#hasNewClientId = true;
      this.#client.renew();
      this.#initialize();
    } else if (error.code !== "lost") {
      const isFinal = error.rpcCode !== INTERNAL_ERROR;
      this.emit("refused", isFinal ? new ClientError("fatal", error.message) : error);
    }
  }

  /** @param {ReconnectResult} result @param {readonly string[]} requested */
  #resumed(result, requested) {
    if (result.type === "replay") {
      const unseen = requested.filter((uri) => this.#isUnseen(uri) && !result.missing.includes(uri));
      for (const uri of result.missing) this.subscriptions.gone(uri);
      for (const envelope of result.actions) this.subscriptions.deliver(envelope);
      this.#goLive(requested.filter((uri) => !unseen.includes(uri)));
    } else {
      const position = Math.max(0, ...result.snapshots.map((snapshot) => snapshot.fromSeq));
      this.subscriptions.restart(result.snapshots, position, requested);
      this.#goLive(requested);
    }
  }

  /**
   * A channel whose state was never received: it needs a snapshot, a replay is not enough.
   *
   * @param {string} uri
   */
  #isUnseen(uri) {
    const mirror = this.subscriptions.mirrors.get(uri);
    return mirror !== undefined && mirror.confirmed === undefined;
  }

  /** @param {readonly string[]} requested */
  #goLive(requested) {
    this.#sendName();
    this.subscriptions.goLive();
    this.subscriptions.reconcile(requested);
    this.emit("live", undefined);
  }

  // Incoming frames

  /** @param {string} method @param {any} params */
  #notification(method, params) {
    switch (method) {
      case "action":
        if (params._meta?.at !== undefined) this.emit("time", params._meta.at);
        this.subscriptions.deliver(params);
        break;
      case "root/sessionAdded":
        this.emit("added", params.summary);
        break;
      case "root/sessionRemoved":
        this.subscriptions.gone(params.session);
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
