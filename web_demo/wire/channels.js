/**
 * What is watched: a mirror per channel, kept up to date over any number of connections, and rooms
 * of presence, which have no state.
 */

/** @import {ActionEnvelope, RejectionEnvelope, SessionState, Snapshot} from "./types.d.ts" */
/** @import {Exchange} from "./exchange.js" */
/** @import {Pending} from "./mirror.js" */
/** @import {Client} from "./tab.js" */
import { WireError } from "./errors.js";
import { fateIn, isMoot } from "./echoes.js";
import { Mirror } from "./mirror.js";
import { reduceRoot, reduceSession } from "./reducer.js";
import { foreseen } from "./review.js";

export const ROOT = "ahp-root://";
export const FRAME_BYTES = 1_048_576;
/** Own actions that may wait for confirmation; one more is not taken. */
export const PENDING_LIMIT = 1_000;

/** @typedef {Mirror<any>} AnyMirror */

export class Channels {
  isLive = false;
  lastSeen = 0;
  /** @type {Map<string, AnyMirror>} */ mirrors = new Map();
  /** @type {Set<string>} */ rooms = new Set();
  #exchange;
  #client;
  #clock;

  /**
   * @param {Client} client
   * @param {Exchange} exchange
   * @param {() => number} clock
   */
  constructor(client, exchange, clock) {
    this.#client = client;
    this.#exchange = exchange;
    this.#clock = clock;
    this.root = new Mirror(ROOT, client, reduceRoot);
    this.mirrors.set(ROOT, this.root);
  }

  /** All that is watched, the root first. */
  get wanted() {
    return [...this.mirrors.keys(), ...this.rooms];
  }

  get waiting() {
    return this.#pending.length;
  }

  get #pending() {
    const all = [...this.mirrors.values()].flatMap((mirror) =>
      mirror.pending.map((pending) => ({ mirror, pending })),
    );
    return all.sort((one, other) => one.pending.clientSeq - other.pending.clientSeq);
  }

  /**
   * The mirror of a session; its state comes as soon as it can.
   *
   * @param {string} uri
   * @returns {AnyMirror}
   */
  watch(uri) {
    const known = this.mirrors.get(uri);
    if (known) return known;
    const mirror = new Mirror(uri, this.#client, reduceSession, fateOf, foreseen);
    this.mirrors.set(uri, mirror);
    if (this.isLive) this.#subscribe(uri);
    return mirror;
  }

  /** @param {string} uri */
  unwatch(uri) {
    const mirror = this.mirrors.get(uri);
    if (!mirror) return;
    this.mirrors.delete(uri);
    mirror.end(new WireError("closed", `${uri} is no longer watched.`));
    if (this.isLive) this.#exchange.notify("unsubscribe", { channel: uri });
  }

  /** @param {string} room */
  join(room) {
    this.rooms.add(room);
    // A host that knows no presence says so, and then there is none.
    if (this.isLive) this.#exchange.ask("subscribe", { channel: room }, NOBODY);
  }

  /** @param {string} room */
  leave(room) {
    this.rooms.delete(room);
    if (this.isLive) this.#exchange.notify("unsubscribe", { channel: room });
  }

  /**
   * Takes effect in the mirror now, and at the host as soon as that can be reached.
   *
   * @param {AnyMirror} mirror
   * @param {Pending} pending
   */
  dispatch(mirror, pending) {
    if (mirror.error) throw mirror.error;
    if (this.waiting >= PENDING_LIMIT) {
      throw new WireError("tooMany", `${PENDING_LIMIT} changes wait to be confirmed already.`);
    }
    const size = new TextEncoder().encode(JSON.stringify(params(mirror, pending))).length + 100;
    if (size > FRAME_BYTES) {
      throw new WireError("tooLarge", `This has ${size} bytes; ${FRAME_BYTES} is the most.`);
    }
    pending.isSent = this.isLive && mirror.confirmed !== undefined;
    mirror.dispatch(pending);
    if (pending.isSent) this.#put(mirror, pending);
  }

  // Connections

  /** All that waited for a connection goes out. */
  goLive() {
    this.isLive = true;
    for (const { mirror, pending } of this.#pending) this.#send(mirror, pending);
  }

  lost() {
    this.isLive = false;
    for (const mirror of this.mirrors.values()) mirror.lost();
  }

  /**
   * All goes on from snapshots; a channel without one is no longer there. Another epoch may count
   * from anywhere, so the old position means nothing now.
   *
   * @param {readonly Snapshot[]} snapshots
   * @param {number} position
   * @param {readonly string[]} asked
   */
  restart(snapshots, position, asked) {
    this.lastSeen = position;
    const found = new Map(snapshots.map((snapshot) => [snapshot.resource, snapshot]));
    for (const uri of asked) {
      const snapshot = found.get(uri);
      if (snapshot) this.mirrors.get(uri)?.resume(snapshot.state, snapshot.fromSeq);
      else if (this.mirrors.has(uri) && uri !== ROOT) this.gone(uri);
    }
  }

  /**
   * Channels that were wanted while the handshake was under way, and what it says is not wanted.
   *
   * @param {readonly string[]} asked
   */
  settle(asked) {
    for (const uri of this.wanted) {
      if (asked.includes(uri)) continue;
      if (this.rooms.has(uri)) this.join(uri);
      else this.#subscribe(uri);
    }
    for (const uri of asked) {
      const isWanted = this.mirrors.has(uri) || this.rooms.has(uri);
      if (!isWanted) this.#exchange.notify("unsubscribe", { channel: uri });
    }
  }

  // What the host says

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
      console.warn(`${envelope.action?.type} was not understood`, error);
      mirror.skip(envelope.serverSeq);
      // A host sends no second snapshot of what it thinks we have.
      this.#exchange.notify("unsubscribe", { channel: envelope.channel });
      this.#subscribe(envelope.channel);
    }
  }

  /**
   * @param {string} uri
   * @param {WireError} [error]
   */
  gone(uri, error) {
    const mirror = this.mirrors.get(uri);
    this.mirrors.delete(uri);
    mirror?.end(error ?? (mirror.confirmed === undefined ? notFound() : gone()));
  }

  /** @param {string} uri */
  #subscribe(uri) {
    this.#exchange.ask("subscribe", { channel: uri }, {
      resolve: ({ snapshot }) => this.#found(uri, snapshot),
      reject: (error) => {
        if (error.code !== "lost") this.gone(uri, error);
      },
    });
  }

  /**
   * @param {string} uri
   * @param {Snapshot | undefined} snapshot
   */
  #found(uri, snapshot) {
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

  /**
   * @param {AnyMirror} mirror
   * @param {Pending} pending
   */
  #send(mirror, pending) {
    if (mirror.confirmed === undefined) return;
    pending.isSent = true;
    this.#put(mirror, pending);
  }

  /**
   * @param {AnyMirror} mirror
   * @param {Pending} pending
   */
  #put(mirror, pending) {
    this.#exchange.notify("dispatchAction", params(mirror, pending));
  }
}

/**
 * @param {SessionState} state
 * @param {Pending} pending
 */
const fateOf = (state, { action, isRestored }) =>
  isRestored && isMoot(state, action) ? "done" : fateIn(state, action);

const gone = () => new WireError("gone", "This session is no longer there.");
const notFound = () =>
  new WireError("notFound", "There is no such session, or it is not for you to see.");

const NOBODY = { resolve: () => {}, reject: () => {} };

/**
 * @param {AnyMirror} mirror
 * @param {Pending} pending
 */
const params = (mirror, { clientSeq, action }) => ({ channel: mirror.channel, clientSeq, action });
