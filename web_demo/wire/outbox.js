/**
 * What was done in one session and is not confirmed: kept over reloads, sent again until the host
 * has judged it, and never twice where twice would be more than once.
 */

/** @import {Action, ActionEnvelope} from "./types.d.ts" */
/** @import {Channels, AnyMirror} from "./channels.js" */
/** @import {Kept, KeptAction} from "./kept.js" */
/** @import {Verdict} from "./mirror.js" */
/** @import {Tab} from "./tab.js" */
import { fateIn, isMoot } from "./echoes.js";
import { WireError } from "./errors.js";
import { Pending } from "./mirror.js";

/** @typedef {(verdict: Verdict) => void} Settled */

export class Outbox {
  #channels;
  #mirror;
  #tab;
  #kept;

  /**
   * @param {Channels} channels
   * @param {AnyMirror} mirror
   * @param {Tab} tab
   * @param {Kept} kept
   */
  constructor(channels, mirror, tab, kept) {
    this.#channels = channels;
    this.#mirror = mirror;
    this.#tab = tab;
    this.#kept = kept;
    this.recall();
  }

  /** Takes up what this tab did before it was loaded again. */
  recall() {
    const known = new Set(this.#mirror.pending.map(({ clientSeq }) => clientSeq));
    for (const kept of this.#kept.actions(this.#mirror.channel)) {
      if (kept.tab === this.#tab.id && !known.has(kept.seq)) this.#restore(kept);
    }
  }

  /** How many actions wait; volatile ones are their senders' to count. */
  get waiting() {
    return this.#mirror.pending.filter((pending) => !pending.isVolatile).length;
  }

  /**
   * @param {Action} action
   * @returns {Promise<ActionEnvelope>}
   */
  dispatch(action) {
    return new Promise((/** @type {(envelope: ActionEnvelope) => void} */ done, fail) => {
      this.#do(action, (verdict) => (verdict instanceof WireError ? fail(verdict) : done(verdict)));
    });
  }

  /**
   * Something that its sender keeps and sends again by itself.
   *
   * @param {Action} action
   * @param {(error: WireError) => void} failed
   * @returns {number} its number
   */
  send(action, failed) {
    const seq = this.#tab.nextSeq();
    const settled = (/** @type {Verdict} */ verdict) => {
      if (verdict instanceof WireError) failed(verdict);
    };
    try {
      this.#channels.dispatch(this.#mirror, new Pending(seq, action, Date.now(), settled, true));
    } catch (error) {
      queueMicrotask(() => failed(/** @type {WireError} */ (error)));
    }
    return seq;
  }

  /**
   * Takes over what tabs that are gone have left; those that are open look after theirs.
   *
   * @param {ReadonlySet<string>} open
   */
  adopt(open) {
    for (const left of this.#kept.actions(this.#mirror.channel)) {
      if (left.tab === this.#tab.id || open.has(left.tab)) continue;
      this.#kept.dropAction(left);
      const { confirmed } = this.#mirror;
      const isMissing = confirmed && fateIn(confirmed, left.action) === "repeat";
      if (isMissing && !isMoot(confirmed, left.action)) this.#do(left.action, () => {});
    }
  }

  /**
   * @param {Action} action
   * @param {Settled} settled
   */
  #do(action, settled) {
    const seq = this.#tab.nextSeq();
    const at = Date.now();
    const pending = new Pending(seq, action, at, this.#forgetting(seq, settled));
    this.#channels.dispatch(this.#mirror, pending);
    if (this.#mirror.pending.includes(pending)) {
      this.#kept.putAction({ session: this.#mirror.channel, seq, at, action });
    }
  }

  /** @param {KeptAction} kept */
  #restore({ seq, action, at }) {
    const pending = new Pending(seq, action, at, this.#forgetting(seq, () => {}));
    pending.isSent = pending.isRestored = true;
    this.#mirror.dispatch(pending);
  }

  /**
   * @param {number} seq
   * @param {Settled} settled
   * @returns {Settled}
   */
  #forgetting(seq, settled) {
    return (verdict) => {
      const isLeft = verdict instanceof WireError && verdict.code === "closed";
      if (!isLeft) this.#kept.dropAction({ session: this.#mirror.channel, seq });
      settled(verdict);
    };
  }
}
