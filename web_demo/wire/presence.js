/**
 * Who else looks at a session, and where they type. Never logged, never in state.
 */

/** @import {EditingPlace, Present} from "./types.d.ts" */
/** @import {Protocol} from "./protocol.js" */
import { Events } from "./events.js";
import { present, same } from "./reducers/updates.js";

const SESSION = "ahp-session:/";
const ROOM = "ahp-presence:/";
const PACE = 150;
/** The host takes nobody as writing for longer than 10 seconds after they said so. */
const RENEWAL = 4_000;

/**
 * @param {string} uri
 * @returns {string | undefined} only sessions of AHP's own scheme have a room
 */
export const roomOf = (uri) =>
  uri.startsWith(SESSION) ? ROOM + uri.slice(SESSION.length) : undefined;

/** @extends {Events<{ change: readonly Present[] }>} */
export class Presence extends Events {
  /** @type {readonly Present[]} */ present = [];
  /** @type {EditingPlace | undefined} */ #editing;
  /** @type {string | undefined} */ #name;
  #isIdle = false;
  #protocol;
  #room;
  /** @type {object} */ #told = {};
  #toldAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #stops;

  /**
   * @param {Protocol} protocol
   * @param {string} room
   * @param {string | undefined} name
   */
  constructor(protocol, room, name) {
    super();
    this.#protocol = protocol;
    this.#room = room;
    this.#name = name;
    this.#stops = [
      protocol.on("present", ({ channel, present }) => {
        if (channel === room) this.#hear(present);
      }),
      protocol.on("live", () => this.#tellAgain()),
      protocol.on("lost", () => this.#hear([])),
    ];
    protocol.channels.join(room);
    if (protocol.isLive) this.#tellAgain();
  }

  close() {
    for (const stop of this.#stops) stop();
    clearTimeout(this.#timer);
    this.#protocol.channels.leave(this.#room);
  }

  /** @param {EditingPlace | undefined} place */
  edits(place) {
    this.#editing = place;
    this.#tellSoon();
  }

  /** @param {boolean} isIdle */
  idles(isIdle) {
    this.#isIdle = isIdle;
    this.#tell(); // a page that is hidden may be suspended at once
  }

  /** @param {string | undefined} name */
  isCalled(name) {
    this.#name = name;
    this.#tellSoon();
  }

  /** @param {readonly Present[]} everybody */
  #hear(everybody) {
    this.present = everybody;
    this.emit("change", everybody);
  }

  get #news() {
    const editing = this.#editing;
    return present({ editing, idle: this.#isIdle || undefined, name: this.#name || undefined });
  }

  #tellAgain() {
    this.#told = {};
    this.#tell();
  }

  #tellSoon() {
    this.#timer ??= setTimeout(() => this.#tell(), PACE);
  }

  #tell() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const news = this.#news;
    const isKnown = same(news, this.#told) && !(news.editing && Date.now() - this.#toldAt > RENEWAL);
    if (!this.#protocol.isLive || isKnown) return;
    this.#told = news;
    this.#toldAt = Date.now();
    this.#protocol.exchange.notify("presence/update", { channel: this.#room, ...news });
  }
}
