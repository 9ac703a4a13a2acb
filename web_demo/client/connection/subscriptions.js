/**
 * What this client subscribes to: a mirror per channel, kept up to date over reconnects, and
 * presence channels, which have no state.
 */

/** @import { Pending } from "../mirror.js" */
/** @import { JsonRpcClient } from "./json-rpc.js" */
/** @import { Client } from "../tab-identity.js" */
/** @import { ActionEnvelope, RejectionEnvelope, SessionState, Snapshot } from "../types.d.ts" */
import { ClientError } from "../errors.js";
import { Mirror } from "../mirror.js";
import { outcomeIn, isObsolete } from "../echoes.js";
import { excessiveSize, FRAME_BYTES, notification } from "./json-rpc.js";
import { reduceRoot, reduceSession } from "../reducers/session.js";
import { predicted } from "../review.js";

export const ROOT = "ahp-root://";
/** Unconfirmed own actions, at most; further ones are refused here. */
export const PENDING_LIMIT = 1_000;

/** @typedef {Mirror<any>} AnyMirror */

export class Subscriptions {
  isLive = false;
  lastSeen = 0;
  /** @type {Map<string, AnyMirror>} */ mirrors = new Map();
  /** @type {Set<string>} */ presenceChannels = new Set();
  #rpc;
  #client;
  #clock;

  /** @param {Client} client @param {JsonRpcClient} rpc @param {() => number} clock */
  constructor(client, rpc, clock) {
    this.#client = client;
    this.#rpc = rpc;
    this.#clock = clock;
    this.root = new Mirror(ROOT, client, reduceRoot);
    this.mirrors.set(ROOT, this.root);
  }

  /** Everything that is subscribed to, the root first. */
  get wanted() {
    return [...this.mirrors.keys(), ...this.presenceChannels];
  }

  get #pendingCount() {
    let count = 0;
    for (const { pending } of this.mirrors.values()) count += pending.length;
    return count;
  }

  /**
   * The mirror of a session; its state arrives later.
   *
   * @param {string} uri
   * @returns {AnyMirror}
   */
  watch(uri) {
    const known = this.mirrors.get(uri);
    if (known) return known;
    const mirror = new Mirror(uri, this.#client, reduceSession, outcomeOf, predicted);
    this.mirrors.set(uri, mirror);
    if (this.isLive) this.#subscribe(uri);
    return mirror;
  }

  /** @param {string} uri */
  unwatch(uri) {
    const mirror = this.mirrors.get(uri);
    if (!mirror) return;
    this.mirrors.delete(uri);
    mirror.end(new ClientError("closed", `${uri} is no longer watched.`));
    if (this.isLive) this.#rpc.notify("unsubscribe", { channel: uri });
  }

  /** @param {string} channel */
  join(channel) {
    this.presenceChannels.add(channel);
    // A host without presence answers with an error, which is ignored.
    if (this.isLive) this.#rpc.request("subscribe", { channel: channel }, IGNORED);
  }

  /** @param {string} channel */
  leave(channel) {
    this.presenceChannels.delete(channel);
    if (this.isLive) this.#rpc.notify("unsubscribe", { channel: channel });
  }

  /**
   * Applied to the mirror now, and sent as soon as there is a connection.
   *
   * @param {AnyMirror} mirror
   * @param {Pending} pending
   */
  dispatch(mirror, pending) {
    if (mirror.error) throw mirror.error;
    if (this.#pendingCount >= PENDING_LIMIT) {
      const waiting = `${PENDING_LIMIT} changes are waiting to be confirmed.`;
      throw new ClientError("tooMany", `${waiting} Wait until the host has confirmed them.`);
    }
    const message = messageOf(mirror, pending);
    const size = excessiveSize(message);
    if (size !== undefined) {
      const allowed = `at most ${FRAME_BYTES} are allowed`;
      throw new ClientError("tooLarge", `This is too large: ${size} bytes, ${allowed}.`);
    }
    pending.isSent = this.isLive && mirror.confirmed !== undefined;
    mirror.dispatch(pending);
    if (pending.isSent) this.#rpc.send(message);
  }

  // Connections

  /** Sends everything that waited for a connection, in the order in which it was done. */
  goLive() {
    this.isLive = true;
    const all = [...this.mirrors.values()].flatMap((mirror) =>
      mirror.pending.map((pending) => ({ mirror, pending })),
    );
    all.sort((one, other) => one.pending.clientSeq - other.pending.clientSeq);
    for (const { mirror, pending } of all) this.#send(mirror, pending);
  }

  lost() {
    this.isLive = false;
    for (const mirror of this.mirrors.values()) mirror.lost();
  }

  /**
   * Continues from snapshots; a channel without one no longer exists. The host may have started a
   * new sequence, so the old position is dropped.
   *
   * @param {readonly Snapshot[]} snapshots
   * @param {number} position
   * @param {readonly string[]} requested
   */
  restart(snapshots, position, requested) {
    this.lastSeen = position;
    const found = new Map(snapshots.map((snapshot) => [snapshot.resource, snapshot]));
    for (const uri of requested) {
      const snapshot = found.get(uri);
      if (snapshot) this.mirrors.get(uri)?.resume(snapshot.state, snapshot.fromSeq);
      else if (this.mirrors.has(uri) && uri !== ROOT) this.gone(uri);
    }
  }

  /**
   * Subscribes to what came to be wanted during the handshake, and unsubscribes from what is not
   * needed any more.
   *
   * @param {readonly string[]} requested - with the handshake
   */
  reconcile(requested) {
    for (const uri of this.wanted) {
      if (requested.includes(uri)) continue;
      if (this.presenceChannels.has(uri)) this.join(uri);
      else this.#subscribe(uri);
    }
    for (const uri of requested) {
      const isWanted = this.mirrors.has(uri) || this.presenceChannels.has(uri);
      if (!isWanted) this.#rpc.notify("unsubscribe", { channel: uri });
    }
  }

  // Incoming

  /** @param {ActionEnvelope | RejectionEnvelope} envelope */
  deliver(envelope) {
    const mirror = this.mirrors.get(envelope.channel);
    if (!mirror) return;
    if ("rejectionReason" in envelope) {
      if (envelope.origin?.clientId === this.#client.clientId) mirror.reject(envelope);
      return;
    }
    this.lastSeen = Math.max(this.lastSeen, envelope.serverSeq);
    try {
      mirror.receive(envelope, envelope._meta?.at ?? this.#clock());
    } catch (error) {
      console.warn(`${envelope.action?.type} could not be applied`, error);
      mirror.skip(envelope.serverSeq);
      // A host sends a second snapshot only after an unsubscribe.
      this.#rpc.notify("unsubscribe", { channel: envelope.channel });
      this.#subscribe(envelope.channel);
    }
  }

  /** @param {string} uri @param {ClientError} [error] */
  gone(uri, error) {
    const mirror = this.mirrors.get(uri);
    this.mirrors.delete(uri);
    mirror?.end(error ?? (mirror.confirmed === undefined ? notFound() : gone()));
  }

  /** @param {string} uri */
  #subscribe(uri) {
    this.#rpc.request("subscribe", { channel: uri }, {
      resolve: ({ snapshot }) => this.#snapshotReceived(uri, snapshot),
      reject: (error) => {
        if (error.code !== "lost") this.gone(uri, error);
      },
    });
  }

  /** @param {string} uri @param {Snapshot | undefined} snapshot */
  #snapshotReceived(uri, snapshot) {
    const mirror = this.mirrors.get(uri);
    if (!mirror || !snapshot) return;
    this.lastSeen = Math.max(this.lastSeen, snapshot.fromSeq);
    if (mirror.confirmed !== undefined) {
      mirror.replace(snapshot.state, snapshot.fromSeq);
      return;
    }
    mirror.resume(snapshot.state, snapshot.fromSeq);
    for (const pending of mirror.pending) this.#send(mirror, pending);
  }

  /** @param {AnyMirror} mirror @param {Pending} pending */
  #send(mirror, pending) {
    if (mirror.confirmed === undefined) return;
    pending.isSent = true;
    this.#rpc.send(messageOf(mirror, pending));
  }
}

/** @param {SessionState} state @param {Pending} pending */
const outcomeOf = (state, { action, isRestored }) =>
  isRestored && isObsolete(state, action) ? "done" : outcomeIn(state, action);

const gone = () => new ClientError("gone", "This session was removed.");
const notFound = () =>
  new ClientError("notFound", "There is no such session, or you have no access to it.");

const IGNORED = { resolve: () => {}, reject: () => {} };

/** @param {AnyMirror} mirror @param {Pending} pending */
const messageOf = ({ channel }, { clientSeq, action }) =>
  notification("dispatchAction", { channel, clientSeq, action });
