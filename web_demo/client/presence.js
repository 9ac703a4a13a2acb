/**
 * Who else is in a session and where they type, and what we report about ourselves. Never logged,
 * never part of the state.
 */

/** @import { Protocol } from "./connection/protocol.js" */
/** @import { EditingPlace, Present } from "./types.d.ts" */
import { Events } from "./events.js";
import { same, withoutUndefined } from "./reducers/updates.js";

const SESSION = "ahp-session:/";
const CHANNEL = "ahp-presence:/";
const SEND_DELAY = 150;
/** The host forgets who is typing after 10 seconds, so it is reported again in time. */
const REFRESH = 4_000;
/** How long after the last key a person still counts as typing. */
const TYPING_TIMEOUT = 4_000;

/**
 * @param {string} uri
 * @returns {string | undefined} only sessions of AHP's own scheme have presence
 */
export const presenceChannelOf = (uri) =>
  uri.startsWith(SESSION) ? CHANNEL + uri.slice(SESSION.length) : undefined;

/** @extends {Events<{ change: readonly Present[] }>} */
export class Presence extends Events {
  /** @type {readonly Present[]} */ present = [];
  /** @type {{ editing?: EditingPlace, idle?: boolean, name?: string }} */ #own;
  #protocol;
  #channel;
  /** @type {object} */ #lastSent = {};
  #sentAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #stops;

  /** @param {Protocol} protocol @param {string} channel @param {string | undefined} name */
  constructor(protocol, channel, name) {
    super();
    this.#protocol = protocol;
    this.#channel = channel;
    this.#own = { name };
    this.#stops = [
      protocol.on("present", (update) => {
        if (update.channel === channel) this.#received(update.present);
      }),
      protocol.on("live", () => this.#sendAgain()),
      protocol.on("lost", () => this.#received([])),
    ];
    protocol.subscriptions.join(channel);
    if (protocol.isLive) this.#sendAgain();
  }

  close() {
    for (const stop of this.#stops) stop();
    clearTimeout(this.#timer);
    this.#protocol.subscriptions.leave(this.#channel);
  }

  /** @param {EditingPlace | undefined} editing */
  setEditing(editing) {
    this.#own.editing = editing;
    this.#sendSoon();
  }

  /** @param {boolean} idle */
  setIdle(idle) {
    this.#own.idle = idle;
    this.#send(); // a page that is hidden may be suspended at once
  }

  /** @param {string | undefined} name */
  setName(name) {
    this.#own.name = name;
    this.#sendSoon();
  }

  /** @param {readonly Present[]} everybody */
  #received(everybody) {
    this.present = everybody;
    this.emit("change", everybody);
  }

  #sendAgain() {
    this.#lastSent = {};
    this.#send();
  }

  #sendSoon() {
    this.#timer ??= setTimeout(() => this.#send(), SEND_DELAY);
  }

  #send() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { editing, idle, name } = this.#own;
    const update = withoutUndefined({ editing, idle: idle || undefined, name: name || undefined });
    const isDue = editing !== undefined && Date.now() - this.#sentAt > REFRESH;
    if (!this.#protocol.isLive || (same(update, this.#lastSent) && !isDue)) return;
    this.#lastSent = update;
    this.#sentAt = Date.now();
    this.#protocol.rpc.notify("presence/update", { channel: this.#channel, ...update });
  }
}

/**
 * Which question a person types into on this page, until they pause.
 *
 * @extends {Events<{ change: EditingPlace | undefined, stopped: EditingPlace }>}
 */
export class TypingIndicator extends Events {
  /** @type {EditingPlace | undefined} */ #place;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /** @param {EditingPlace} place */
  isAt({ requestId, questionId }) {
    return this.#place?.requestId === requestId && this.#place.questionId === questionId;
  }

  /** @param {EditingPlace | undefined} place - `undefined`: typing has ended */
  at(place) {
    clearTimeout(this.#timer);
    const left = this.#place;
    this.#place = place && { requestId: place.requestId, questionId: place.questionId };
    this.emit("change", this.#place);
    if (place) this.#timer = setTimeout(() => this.at(undefined), TYPING_TIMEOUT);
    if (left && !this.isAt(left)) this.emit("stopped", left);
  }

  close() {
    clearTimeout(this.#timer);
  }
}
