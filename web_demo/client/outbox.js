/**
 * The actions of one session that the host has not confirmed: saved over reloads and sent again
 * until it has, except where a repetition could have a second effect.
 */

/** @import { Verdict } from "./mirror.js" */
/** @import { BrowserStorage } from "./storage.js" */
/** @import { AnyMirror, Subscriptions } from "./connection/subscriptions.js" */
/** @import { Tab } from "./tab-identity.js" */
/** @import { Action, ActionEnvelope, ResponseKind } from "./types.d.ts" */
import { ClientError } from "./errors.js";
import { Pending } from "./mirror.js";
import { outcomeIn, isObsolete } from "./echoes.js";

/** @typedef {(verdict: Verdict) => void} Settled */

/**
 * A form that was completed here and is not confirmed yet. `isSent`: on this connection;
 * `mayHaveArrived`: it was sent before, so the host may have it.
 *
 * @typedef {{
 *   requestId: string, response: ResponseKind, isSent: boolean, mayHaveArrived: boolean,
 * }} Completion
 */

export class Outbox {
  #subscriptions;
  #mirror;
  #tab;
  #storage;

  /**
   * @param {Subscriptions} subscriptions
   * @param {AnyMirror} mirror
   * @param {Tab} tab
   * @param {BrowserStorage} storage
   */
  constructor(subscriptions, mirror, tab, storage) {
    this.#subscriptions = subscriptions;
    this.#mirror = mirror;
    this.#tab = tab;
    this.#storage = storage;
    this.restore();
  }

  /** Restores what this tab did before a reload. */
  restore() {
    const known = new Set(this.#mirror.pending.map(({ clientSeq }) => clientSeq));
    for (const { tab, seq, action, at } of this.#storage.actions(this.#mirror.channel)) {
      if (tab !== this.#tab.id || known.has(seq)) continue;
      const pending = new Pending(seq, action, at, this.#whenSettled(seq, () => {}));
      pending.isSent = pending.isRestored = true;
      this.#mirror.dispatch(pending);
    }
  }

  /** How many actions wait; drafts are counted by their fields. */
  get waiting() {
    return this.#mirror.pending.filter((pending) => !pending.isVolatile).length;
  }

  /** @param {Action} action @returns {Promise<ActionEnvelope>} */
  dispatch(action) {
    return new Promise((/** @type {(envelope: ActionEnvelope) => void} */ done, fail) => {
      this.#dispatch(action, (verdict) => (verdict instanceof ClientError ? fail(verdict) : done(verdict)));
    });
  }

  /**
   * A draft is not stored here and is withdrawn when the connection breaks: its field saves it, and
   * sends it again if needed.
   *
   * @param {Action} action
   * @param {(error: ClientError) => void} failed
   * @returns {number} its number
   */
  dispatchDraft(action, failed) {
    const seq = this.#tab.nextSeq();
    const settled = (/** @type {Verdict} */ verdict) => {
      if (verdict instanceof ClientError) failed(verdict);
    };
    try {
      this.#subscriptions.dispatch(this.#mirror, new Pending(seq, action, Date.now(), settled, true));
    } catch (error) {
      queueMicrotask(() => failed(/** @type {ClientError} */ (error)));
    }
    return seq;
  }

  /**
   * Sends what closed tabs have left; open tabs send their own.
   *
   * @param {ReadonlySet<string>} open
   */
  adopt(open) {
    for (const left of this.#storage.actions(this.#mirror.channel)) {
      if (left.tab === this.#tab.id || open.has(left.tab)) continue;
      this.#storage.dropAction(left);
      const { confirmed } = this.#mirror;
      const isMissing = confirmed && outcomeIn(confirmed, left.action) === "repeat";
      if (isMissing && !isObsolete(confirmed, left.action)) this.#dispatch(left.action, () => {});
    }
  }

  /** @returns {Completion[]} in the order in which they were made */
  get completions() {
    const isConnected = this.#subscriptions.isLive && this.#mirror.confirmed !== undefined;
    return this.#mirror.pending.flatMap(({ action, isSent }) => {
      if (action.type !== "session/inputCompleted") return [];
      const { requestId, response } = action;
      return [{ requestId, response, isSent: isSent && isConnected, mayHaveArrived: isSent }];
    });
  }

  /**
   * Undoes a completion that was never sent.
   *
   * @param {string} requestId
   * @returns {boolean} whether it could
   */
  withdraw(requestId) {
    const found = this.#mirror.pending.find(
      ({ action }) => action.type === "session/inputCompleted" && action.requestId === requestId,
    );
    if (!found || found.isSent) return false;
    this.#mirror.withdraw(found);
    return true;
  }

  /** @param {Action} action @param {Settled} settled */
  #dispatch(action, settled) {
    const seq = this.#tab.nextSeq();
    const at = Date.now();
    const pending = new Pending(seq, action, at, this.#whenSettled(seq, settled));
    this.#subscriptions.dispatch(this.#mirror, pending);
    if (this.#mirror.pending.includes(pending)) {
      this.#storage.putAction({ session: this.#mirror.channel, seq, at, action });
    }
  }

  /** @param {number} seq @param {Settled} settled @returns {Settled} */
  #whenSettled(seq, settled) {
    return (verdict) => {
      const isClosed = verdict instanceof ClientError && verdict.code === "closed";
      if (!isClosed) this.#storage.dropAction({ session: this.#mirror.channel, seq });
      settled(verdict);
    };
  }
}
