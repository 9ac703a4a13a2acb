/**
 * A copy of one channel: what the host has confirmed, and our own actions on top of it.
 *
 * Own actions are applied at once (optimistic updates) and undone if the host refuses them. No I/O,
 * no clock: envelopes come in, changes and verdicts go out. `subscriptions.js` decides when actions
 * are sent; `reducers/` what they do.
 */

/** @import { Outcome } from "./echoes.js" */
/** @import { Client } from "./tab-identity.js" */
/** @import { Action, ActionEnvelope, RejectionEnvelope } from "./types.d.ts" */
import { ClientError } from "./errors.js";
import { Events } from "./events.js";
import { isDeferredEcho, isEcho } from "./echoes.js";

/** @typedef {ActionEnvelope | ClientError} Verdict the outcome of an own action */

/**
 * action: someone else or the host did something; dispatched: we did, unconfirmed; confirmed: the
 * host accepted it; rejected: the host refused it, so it is undone; withdrawn: undone here, or by a
 * lost connection; snapshot: the host sent the whole state.
 *
 * @typedef {"action" | "dispatched" | "confirmed" | "rejected" | "withdrawn" | "snapshot"} Cause
 */

/**
 * `before` and `after` are what people see: the confirmed state with own actions on top.
 *
 * @template S
 * @typedef {{
 *   cause: Cause, before: S | undefined, after: S | undefined,
 *   envelope?: ActionEnvelope, action?: Action, reason?: string, refusal?: string
 * }} Change
 */

/**
 * An own action that the host has neither accepted nor refused. It keeps its number on every
 * connection.
 * `isVolatile`: it is not sent again by itself when the connection breaks.
 */
export class Pending {
  isSent = false;
  /** Restored after a reload: nothing awaits it any more. */
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
 * @extends {Events<{ change: Change<S>, end: ClientError }>}
 */
export class Mirror extends Events {
  /** @type {S | undefined} */ confirmed;
  /** @type {S | undefined} */ state;
  /** @type {readonly Pending[]} */ pending = [];
  /** @type {ClientError | undefined} */ error;
  position = -1;
  #client;
  #reduce;
  #outcome;
  #predict;

  /**
   * @param {string} channel
   * @param {Client} client
   * @param {(state: S, action: Action, at: number) => S} reduce
   * @param {(state: S, pending: Pending) => Outcome} [outcome]
   * @param {(state: S, action: Action) => Action} [predict] - an own action as the host will apply
   * it
   */
  constructor(channel, client, reduce, outcome = () => "repeat", predict = (_, action) => action) {
    super();
    this.channel = channel;
    this.#client = client;
    this.#reduce = reduce;
    this.#outcome = outcome;
    this.#predict = predict;
  }

  get clientId() {
    return this.#client.clientId;
  }

  /** @param {Pending} pending */
  dispatch(pending) {
    const before = this.state;
    this.pending = [...this.pending, pending];
    if (before !== undefined) this.state = this.#predicted(before, pending);
    this.#emitChange("dispatched", before, { action: pending.action });
  }

  /**
   * An accepted action; one that was received before a reconnect is ignored.
   *
   * @param {ActionEnvelope} envelope
   * @param {number} at
   */
  receive(envelope, at) {
    if (this.confirmed === undefined || envelope.serverSeq <= this.position) return;
    const before = this.state;
    this.position = envelope.serverSeq;
    this.confirmed = this.#reduce(this.confirmed, envelope.action, at);
    const settled = this.pending.filter((pending) => this.#settles(envelope, pending));
    this.#rebaseWithout(settled);
    const cause = settled.length ? "confirmed" : "action";
    this.#emitChange(cause, before, { envelope, action: envelope.action });
    for (const pending of settled) pending.settle(envelope);
  }

  /** @param {RejectionEnvelope} envelope */
  reject({ origin, rejectionReason: reason, _meta }) {
    const pending = this.pending.find((own) => own.clientSeq === origin.clientSeq);
    if (!pending) return;
    const before = this.state;
    const { action } = pending;
    this.#rebaseWithout([pending]);
    this.#emitChange("rejected", before, { action, reason, refusal: _meta?.code });
    const about = { refusal: _meta?.code, questionId: _meta?.questionId };
    pending.settle(new ClientError("rejected", reason, about));
  }

  /**
   * An action that cannot be reduced is left out, as AHP's own reducers do.
   *
   * @param {number} position
   */
  skip(position) {
    this.position = Math.max(this.position, position);
  }

  /**
   * A snapshot on a new connection; nothing of the old one will be answered.
   *
   * @param {S} state
   * @param {number} position
   */
  resume(state, position) {
    const sent = this.pending.filter((pending) => pending.isSent);
    const outcomes = new Map(sent.map((pending) => [pending, this.#outcome(state, pending)]));
    this.pending = this.pending.filter((p) => (outcomes.get(p) ?? "repeat") === "repeat");
    this.replace(state, position);
    for (const [pending, outcome] of outcomes) {
      if (outcome === "done") pending.settle(this.#asSeen(pending));
      if (outcome === "unknown") pending.settle(new ClientError("unconfirmed", UNCONFIRMED));
    }
  }

  /**
   * A snapshot on the same connection; it contains everything until now.
   *
   * @param {S} state
   * @param {number} position
   */
  replace(state, position) {
    const before = this.state;
    this.confirmed = state;
    this.position = position;
    this.#rebase();
    this.#emitChange("snapshot", before);
  }

  /**
   * Undone before it was sent.
   *
   * @param {Pending} pending
   */
  withdraw(pending) {
    const before = this.state;
    const { action } = pending;
    this.#rebaseWithout([pending]);
    this.#emitChange("withdrawn", before, { action });
    pending.settle(new ClientError("withdrawn", "This was undone before it was sent."));
  }

  /** The connection broke: volatile actions are given back to their senders. */
  lost() {
    const gone = this.pending.filter((pending) => pending.isVolatile);
    if (!gone.length) return;
    const before = this.state;
    this.#rebaseWithout(gone);
    this.#emitChange("withdrawn", before);
    for (const pending of gone) pending.settle(new ClientError("lost", "The connection was lost."));
  }

  /**
   * The channel has ended.
   *
   * @param {ClientError} error
   */
  end(error) {
    this.error = error;
    const { pending } = this;
    this.#rebaseWithout(pending);
    this.emit("end", error);
    for (const own of pending) own.settle(error);
  }

  /**
   * Compares the content too, since one batch can contain several actions of one origin.
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
   * The envelope was missed; this is what is known about it.
   *
   * @param {Pending} pending
   * @returns {ActionEnvelope}
   */
  #asSeen({ action, clientSeq }) {
    const origin = { clientId: this.clientId, clientSeq };
    return { channel: this.channel, action, serverSeq: this.position, origin };
  }

  /** @param {readonly Pending[]} gone - own actions that are removed, if any */
  #rebaseWithout(gone) {
    if (gone.length) this.pending = this.pending.filter((own) => !gone.includes(own));
    this.#rebase();
  }

  /** Applies what is pending to the confirmed state again. */
  #rebase() {
    let state = this.confirmed;
    for (const pending of this.pending) {
      if (state !== undefined) state = this.#predicted(state, pending);
    }
    this.state = state;
  }

  /** @param {S} state @param {Pending} pending */
  #predicted(state, { action, at }) {
    return this.#reduce(state, this.#predict(state, action), at);
  }

  /** @param {Cause} cause @param {S | undefined} before @param {Partial<Change<S>>} [about] */
  #emitChange(cause, before, about) {
    this.emit("change", { ...about, cause, before, after: this.state });
  }
}

const UNCONFIRMED =
  "The connection was lost before this was confirmed. It may have been accepted.";
