// The time that is left for an answer, and what happens then. Any key that is pressed in the form, on
// any device, stops a countdown to proposed answers for everyone.

/** @import { InputRequest } from "../wire/types.d.ts" */
/** @import { Room } from "../views/room.js" */
import { attribute, h, icon, say, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { countdown, timeOf } from "../text/words.js";

const SOON = 60_000;
/** Most keys become a draft by themselves, which stops it as well; the others are told after this. */
const MOMENT = 400;

export class Countdown {
  words = h("span");
  element = h("p", { class: "countdown", role: "timer" }, icon(ICONS.clock), this.words);
  isStopped = false;
  /** @type {readonly InputRequest[]} */
  requests = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  telling = undefined;

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
    this.timer = setInterval(() => this.#tick(), 1000);
    this.off = room.session.on("change", ({ envelope }) => {
      const { action } = envelope ?? {};
      if (action?.type === "session/inputAnswerChanged") this.#touched(action.requestId);
    });
  }

  /** @param {readonly InputRequest[]} requests */
  update(requests) {
    this.requests = requests;
    // The host stops it for good at the first change, so one that was seen is enough.
    if (requests.some((request) => Object.keys(request.answers ?? {}).length > 0))
      this.isStopped = true;
    this.#tick();
  }

  /** Somebody pressed a key here. */
  pressed() {
    if (this.isStopped || !this.requests.some(isStoppable)) return;
    this.telling ??= setTimeout(() => this.#tell(), MOMENT);
  }

  /** Says that somebody is at it, by taking back an answer that is not there. */
  #tell() {
    this.telling = undefined;
    const { host, session } = this.room;
    if (this.isStopped || !["live", "syncing"].includes(host.status.phase)) return;
    for (const { id, questions } of this.requests.filter(isStoppable)) {
      const fields = (questions ?? []).map((question) => session.field(id, question.id));
      fields.find((field) => field.state === "empty")?.touch();
    }
  }

  /** @param {string} requestId */
  #touched(requestId) {
    if (!this.requests.some(({ id }) => id === requestId)) return;
    this.isStopped = true;
    this.#tick();
  }

  #tick() {
    const times = this.requests.map((request) => request._meta?.expiresAt ?? Infinity);
    const at = Math.min(...times);
    const request = this.requests[times.indexOf(at)];
    show(this.element, Number.isFinite(at));
    if (!request || !Number.isFinite(at)) return;
    const left = at - this.room.host.now();
    attribute(this.element, "data-soon", left < SOON && !this.#waits(request));
    say(this.words, this.#said(request, at, left));
  }

  /** @param {InputRequest} request */
  #waits(request) {
    const ending = request._meta?.onExpiry;
    return ending === "wait" || (ending === "defaults" && this.isStopped);
  }

  /**
   * @param {InputRequest} request
   * @param {number} at
   * @param {number} left
   */
  #said(request, at, left) {
    const ending = request._meta?.onExpiry;
    if (ending === "wait") return `Due by ${timeOf(at)}. You can still answer later.`;
    if (ending === "defaults" && this.isStopped)
      return "The timer has stopped: someone is answering.";
    if (left <= 0) return "Time is up.";
    if (ending === "defaults" && !request.questions?.length)
      return `Will be accepted in ${countdown(left)} unless someone answers.`;
    if (ending === "defaults")
      return `Defaults will be sent in ${countdown(left)}. Press any key to stop the timer.`;
    return `Closes unanswered in ${countdown(left)}, at ${timeOf(at)}.`;
  }

  remove() {
    this.off();
    clearInterval(this.timer);
    clearTimeout(this.telling);
  }
}

/** @param {InputRequest} request */
const isStoppable = ({ _meta }) => _meta?.onExpiry === "defaults" && _meta.expiresAt !== undefined;
