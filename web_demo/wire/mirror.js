/**
 * A copy of one channel: what the host has confirmed, and our own actions on top of it.
 *
 * No I/O, no clock, no waiting: envelopes come in, changes and verdicts go out. Above it stand the
 * channels, which decide when actions are sent; below it reducers, which say what they do.
 */

/** @import {Action, ActionEnvelope, RejectionEnvelope} from "./types.d.ts" */
/** @import {Fate} from "./echoes.js" */
/** @import {Client} from "./tab.js" */
import { isDeferredEcho, isEcho } from "./echoes.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";

/** @typedef {ActionEnvelope | WireError} Verdict what became of an own action */

/**
 * action: somebody else or the host did something; dispatched: we did, unconfirmed; confirmed: the
 * host accepted it; rejected: the host refused it, so it is undone; withdrawn: its sender has it
 * back, unconfirmed: the connection broke, or somebody took it back; snapshot: the host sent all.
 *
 * @typedef {"action" | "dispatched" | "confirmed" | "rejected" | "withdrawn" | "snapshot"} Cause
 */

/**
 * `before` and `after` are what people see: the confirmed state with own actions on top.
 *
 * @template S
 * @typedef {{
 *   cause: Cause, before: S | undefined, after: S | undefined, known?: S,
 *   envelope?: ActionEnvelope, action?: Action, reason?: string, refusal?: string
 * }} Change
 */

/**
 * An own action that the host has not judged yet. It keeps its number on every connection.
 * `isVolatile`: it is not sent again by itself when the connection breaks.
 */
export class Pending {
  isSent = false;
  /** Done before the page was loaded again: nobody waits for it any more. */
  isRestored = false;

  /**
   * @param {number} clientSeq
   * @param {Action} action
   * @param {number} at
   * @param {(verdict: Verdict) => void} settle
   * @param {boolean} [isVolatile]
   */
  constructor(clientSeq, action, at, settle, isVolatile = false) {
    this.clientSeq = clientSeq;
    this.action = action;
    this.at = at;
    this.settle = settle;
    this.isVolatile = isVolatile;
  }
}

/**
 * @template S
 * @extends {Events<{ change: Change<S>, end: WireError }>}
 */
export class Mirror extends Events {
  /** @type {S | undefined} */ confirmed;
  /** @type {S | undefined} */ state;
  /** @type {readonly Pending[]} */ pending = [];
  /** @type {WireError | undefined} */ error;
  position = -1;
  #client;
  #reduce;
  #fate;
  #foresee;

  /**
   * @param {string} channel
   * @param {Client} client
   * @param {(state: S, action: Action, at: number) => S} reduce
   * @param {(state: S, pending: Pending) => Fate} [fate]
   * @param {(state: S, action: Action) => Action} [foresee] - what the host makes of an own action
   */
  constructor(channel, client, reduce, fate = () => "repeat", foresee = (_, action) => action) {
    super();
    this.channel = channel;
    this.#client = client;
    this.#reduce = reduce;
    this.#fate = fate;
    this.#foresee = foresee;
  }

  get clientId() {
    return this.#client.clientId;
  }

  /** @param {Pending} pending */
  dispatch(pending) {
    const before = this.state;
    this.pending = [...this.pending, pending];
    if (before !== undefined) this.state = this.#foreseen(before, pending);
    this.#tell("dispatched", before, { action: pending.action });
  }

  /**
   * An accepted action; one that we have already, from before a reconnect, is passed over.
   *
   * @param {ActionEnvelope} envelope
   * @param {number} at
   */
  receive(envelope, at) {
    if (this.confirmed === undefined || envelope.serverSeq <= this.position) return;
    const before = this.state;
    const known = this.confirmed;
    this.position = envelope.serverSeq;
    this.confirmed = this.#reduce(known, envelope.action, at);
    const settled = this.pending.filter((pending) => this.#settles(envelope, pending));
    this.#leave(settled);
    const cause = settled.length ? "confirmed" : "action";
    this.#tell(cause, before, { envelope, action: envelope.action, known });
    for (const pending of settled) pending.settle(envelope);
  }

  /** @param {RejectionEnvelope} envelope */
  reject({ origin, rejectionReason: reason, _meta }) {
    const pending = this.pending.find((own) => own.clientSeq === origin.clientSeq);
    if (!pending) return;
    const before = this.state;
    const { action } = pending;
    this.#leave([pending]);
    this.#tell("rejected", before, { action, reason, refusal: _meta?.code });
    const about = { action, refusal: _meta?.code, questionId: _meta?.questionId };
    pending.settle(new WireError("rejected", reason, about));
  }

  /**
   * An action that we cannot understand: like AHP's own reducers, we leave it out.
   *
   * @param {number} position
   */
  skip(position) {
    this.position = Math.max(this.position, position);
  }

  /**
   * A snapshot on a new connection, after which nothing of the old one will be answered.
   *
   * @param {S} state
   * @param {number} position
   */
  resume(state, position) {
    const before = this.state;
    const sent = this.pending.filter((pending) => pending.isSent);
    const fates = new Map(sent.map((pending) => [pending, this.#fate(state, pending)]));
    this.pending = this.pending.filter((p) => (fates.get(p) ?? "repeat") === "repeat");
    this.#renew(state, position, before);
    for (const [pending, fate] of fates) {
      if (fate === "done") pending.settle(this.#asSeen(pending));
      if (fate === "unknown") pending.settle(unconfirmed(pending.action));
    }
  }

  /**
   * A snapshot on the same connection: whatever happened meanwhile is in it.
   *
   * @param {S} state
   * @param {number} position
   */
  replace(state, position) {
    this.#renew(state, position, this.state);
  }

  /**
   * @param {S} state
   * @param {number} position
   * @param {S | undefined} before
   */
  #renew(state, position, before) {
    this.confirmed = state;
    this.position = position;
    this.#rebase();
    this.#tell("snapshot", before);
  }

  /**
   * Undone by whoever did it, before it was sent.
   *
   * @param {Pending} pending
   */
  takeBack(pending) {
    const before = this.state;
    const { action } = pending;
    this.#leave([pending]);
    this.#tell("withdrawn", before, { action });
    pending.settle(new WireError("takenBack", "This was taken back before it was sent.", { action }));
  }

  /** The connection broke: what is volatile goes back to whoever sent it. */
  lost() {
    const gone = this.pending.filter((pending) => pending.isVolatile);
    if (!gone.length) return;
    const before = this.state;
    this.#leave(gone);
    this.#tell("withdrawn", before);
    for (const pending of gone) pending.settle(lost());
  }

  /**
   * Nothing more will come.
   *
   * @param {WireError} error
   */
  end(error) {
    this.error = error;
    const { pending } = this;
    this.#leave(pending);
    this.emit("end", error);
    for (const own of pending) own.settle(error);
  }

  /**
   * The content counts too, since one batch can hold several actions of one origin.
   *
   * @param {ActionEnvelope} envelope
   * @param {Pending} pending
   */
  #settles({ origin, action }, pending) {
    if (!origin) return pending.isSent && isDeferredEcho(pending.action, action);
    return (
      origin.clientId === this.clientId &&
      origin.clientSeq === pending.clientSeq &&
      isEcho(pending.action, action)
    );
  }

  /**
   * The envelope was missed; this is what is known of it.
   *
   * @param {Pending} pending
   * @returns {ActionEnvelope}
   */
  #asSeen({ action, clientSeq }) {
    const origin = { clientId: this.clientId, clientSeq };
    return { channel: this.channel, action, serverSeq: this.position, origin };
  }

  /** @param {readonly Pending[]} settled */
  #leave(settled) {
    if (settled.length) this.pending = this.pending.filter((own) => !settled.includes(own));
    this.#rebase();
  }

  #rebase() {
    let state = this.confirmed;
    for (const pending of this.pending) {
      if (state !== undefined) state = this.#foreseen(state, pending);
    }
    this.state = state;
  }

  /**
   * @param {S} state
   * @param {Pending} pending
   */
  #foreseen(state, { action, at }) {
    return this.#reduce(state, this.#foresee(state, action), at);
  }

  /**
   * @param {Cause} cause
   * @param {S | undefined} before
   * @param {Partial<Change<S>>} [about]
   */
  #tell(cause, before, about) {
    this.emit("change", { ...about, cause, before, after: this.state });
  }
}

const lost = () => new WireError("lost", "The connection broke.");

/** @param {Action} action */
const unconfirmed = (action) =>
  new WireError("unconfirmed", "The connection broke before this was confirmed; it may have counted.", {
    action,
  });
