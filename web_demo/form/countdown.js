// The time that is left for an answer, and what happens then.

/** @import { InputRequest } from "../wire/types.d.ts" */
import { attribute, h, icon, say, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { countdown, timeOf } from "../text/words.js";

const SOON = 60_000;

export class Countdown {
  /** @param {() => number} now the time at the host, which keeps the deadline */
  constructor(now) {
    this.now = now;
    this.words = h("span");
    this.element = h("p", { class: "countdown", role: "timer" }, icon(ICONS.clock), this.words);
    this.isStopped = false;
    /** @type {readonly InputRequest[]} */
    this.requests = [];
    this.timer = setInterval(() => this.#tick(), 1000);
  }

  /** @param {readonly InputRequest[]} requests */
  update(requests) {
    this.requests = requests;
    // The host stops it for good at the first draft, so one that was seen is enough.
    if (requests.some((request) => Object.keys(request.answers ?? {}).length > 0))
      this.isStopped = true;
    this.#tick();
  }

  #tick() {
    const times = this.requests.map((request) => request._meta?.expiresAt ?? Infinity);
    const at = Math.min(...times);
    const request = this.requests[times.indexOf(at)];
    show(this.element, Number.isFinite(at));
    if (!request || !Number.isFinite(at)) return;
    const left = at - this.now();
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
    if (ending === "wait") return `Wanted by ${timeOf(at)}; it waits longer if need be.`;
    if (ending === "defaults" && this.isStopped)
      return "The countdown has stopped: somebody is answering.";
    if (left <= 0) return "Time is up.";
    if (ending === "defaults")
      return `In ${countdown(left)} the proposed answers are used. Typing stops this.`;
    return `Closes unanswered in ${countdown(left)}, at ${timeOf(at)}.`;
  }

  remove() {
    clearInterval(this.timer);
  }
}
