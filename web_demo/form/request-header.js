// The header of a form: who asks, in which round, the title, and the time that is left.

/** @import { InputRequest } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session/session-context.js" */
/** @import { Group } from "./request-groups.js" */
import { NO_AGENT } from "../client/session-list.js";
import { countdown, counted, subjectOf, timeOf } from "../text/format.js";
import { attribute, fill, h, icon, iconButton, setText, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { sessionHash } from "../views/routes.js";
import { copyText } from "../views/toasts.js";
import { goneSince } from "./request-groups.js";

const COPY = "Copy a link to this question";

export class RequestHeader {
  element = h("header", { class: "request-head" });
  gone = h("p", { class: "asker-gone notice", role: "status", hidden: true });

  /** @param {SessionContext} context @param {string} titleId */
  constructor(context, titleId) {
    this.context = context;
    this.titleId = titleId;
    this.countdown = new Countdown(context);
  }

  /** @param {Group} group */
  build(group) {
    const { context, titleId, countdown } = this;
    fill(this.element, ...headerOf(context, group, titleId), countdown.element, this.gone);
  }

  /** @param {Group} group - whose requests all have the same asker */
  update({ requests }) {
    this.countdown.update(requests);
    const [since] = requests.flatMap((request) => goneSince(request) ?? []);
    const left = `The program that asked is no longer waiting (since ${timeOf(since ?? 0)}).`;
    setText(this.gone, since === undefined ? "" : `${left} Your answer will be kept for it.`);
    show(this.gone, since !== undefined);
  }

  remove() {
    this.countdown.remove();
  }
}

/** @param {SessionContext} context @param {Group} group @param {string} titleId */
function headerOf(context, group, titleId) {
  const [first] = group.requests;
  const { server, tool, round, by } = first?._meta ?? {};
  const link = new URL(sessionHash(context.session.uri, first?.id), location.href).href;
  const copy = () => copyText(link, "Link copied.");
  const asker = server ? [server, tool].filter(Boolean).join(" · ") : (by?.name ?? askerOf(context));
  return [
    h(
      "p",
      { class: "asker row hint" },
      icon(server ? ICONS.tool : ICONS.question),
      h("bdi", { class: "asker-name one-line" }, asker),
      h("span", null, " asks"),
      round !== undefined && round > 1 && h("span", { class: "round" }, `Round ${round}`),
      iconButton(ICONS.link, COPY, copy, { class: "icon-button copy-link", title: COPY }),
    ),
    h("h2", { class: "subject", id: titleId, dir: "auto" }, titleOf(group)),
  ];
}

/**
 * In a session without an agent, a program asks.
 * @param {SessionContext} context
 */
function askerOf(context) {
  const isPassive = context.session.state?.summary.provider === NO_AGENT;
  return isPassive ? "A program" : context.agentName();
}

/** @param {Group} group */
function titleOf({ requests }) {
  const [first] = requests;
  if (requests.length === 1 && first) return subjectOf(first);
  return `${first?._meta?.tool ?? "It"} needs ${counted(requests.length, "thing")} from you`;
}

// The countdown: the time that is left and what happens then. Any key in the form, on any device,
// stops a countdown to defaults for everyone.

const SOON = 60_000;
/** Most keys become a draft, which stops it as well; for other keys the host is notified after this. */
const MOMENT = 400;

class Countdown {
  text = h("span");
  element = h("p", { class: "countdown row hint", role: "timer" }, icon(ICONS.clock), this.text);
  isStopped = false;
  /** @type {readonly InputRequest[]} */
  requests = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  stopTimer = undefined;

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
    this.timer = setInterval(() => this.#tick(), 1000);
    this.off = context.session.on("change", ({ envelope }) => {
      const { action } = envelope ?? {};
      if (action?.type === "session/inputAnswerChanged") this.#answered(action.requestId);
    });
  }

  /** @param {readonly InputRequest[]} requests */
  update(requests) {
    this.requests = requests;
    // The host stops it for good at the first change.
    if (requests.some((request) => Object.keys(request.answers ?? {}).length > 0))
      this.isStopped = true;
    this.#tick();
  }

  /** Somebody pressed a key here. */
  pressed() {
    if (this.isStopped || !this.requests.some(isStoppable)) return;
    this.stopTimer ??= setTimeout(() => this.#stopForAll(), MOMENT);
  }

  /** Reports to the host that a person is answering, by clearing an answer that does not exist. */
  #stopForAll() {
    this.stopTimer = undefined;
    const { host, session } = this.context;
    if (this.isStopped || !host.isLive) return;
    for (const { id, questions } of this.requests.filter(isStoppable)) {
      const fields = (questions ?? []).map((question) => session.field(id, question.id));
      fields.find((field) => field.state === "empty")?.touch();
    }
  }

  /** @param {string} requestId */
  #answered(requestId) {
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
    const left = at - this.context.host.now();
    attribute(this.element, "data-soon", left < SOON && !this.#waits(request));
    setText(this.text, this.#textOf(request, at, left));
  }

  /** @param {InputRequest} request */
  #waits(request) {
    const ending = request._meta?.onExpiry;
    return ending === "wait" || (ending === "defaults" && this.isStopped);
  }

  /** @param {InputRequest} request @param {number} at @param {number} left */
  #textOf(request, at, left) {
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
    clearTimeout(this.stopTimer);
  }
}

/** @param {InputRequest} request */
const isStoppable = ({ _meta }) => _meta?.onExpiry === "defaults" && _meta.expiresAt !== undefined;
