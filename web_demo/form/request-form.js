// The form of one round: all requests that were asked together, answered together, closed together.

/** @import { Action, Answer, InputRequest } from "../wire/types.d.ts" */
/** @import { WireError } from "../wire/errors.js" */
/** @import { Room } from "../views/room.js" */
/** @import { Delayed } from "../views/toast.js" */
/** @import { Group } from "./groups.js" */
/** @import { Mode } from "./request-foot.js" */
import { WHY_ID } from "../views/access.js";
import { announce } from "../views/announcer.js";
import { attribute, fill, h, say, show } from "../views/dom.js";
import { unlessUndone } from "../views/toast.js";
import { counted, labelOf, subjectOf, timeOf } from "../text/words.js";
import { REVIEW_CHANGED } from "../wire/session.js";
import { acceptanceOf, isSent } from "./acceptance.js";
import { Countdown } from "./countdown.js";
import { goneSince, isSameShape } from "./groups.js";
import { QuestionView } from "./question.js";
import { RequestFoot } from "./request-foot.js";
import { headOf } from "./request-head.js";
import { reviewOf } from "./review.js";
import { contributors, isSettled } from "./states.js";
import { Strip } from "./strip.js";
import { UrlRequest } from "./url-request.js";

/** @typedef {"accept" | "decline" | "cancel"} Response */

const LONG = 20;

export class RequestForm {
  foot = new RequestFoot({
    accept: () => (this.#yesNo ? this.#sayYesOrNo(true) : this.#acceptPressed()),
    no: () => this.#sayYesOrNo(false),
    submitAll: () => this.#submitAll(),
    decline: () => this.#askFor("decline"),
    cancel: () => this.#askFor("cancel"),
    back: () => this.#goBack(),
    sure: () => this.#leave(this.mode === "cancel" ? "cancel" : "decline"),
  });
  /** @type {QuestionView[]} */
  views = [];
  /** @type {Map<string, UrlRequest>} */
  urls = new Map();
  mode = /** @type {Mode} */ ("form");
  /** @type {Delayed | undefined} */
  leaving = undefined;

  /**
   * @param {Room} room
   * @param {Group} group
   */
  constructor(room, group) {
    this.room = room;
    this.group = group;
    this.titleId = `asked-${group.key.replace(/[^\w-]/g, "-")}`;
    this.countdown = new Countdown(room);
    this.body = h("div", { class: "request-body" });
    this.reviewed = h("div", { class: "request-review", hidden: true });
    this.head = h("header", { class: "request-head" });
    this.gone = h("p", { class: "asker-gone", role: "status", hidden: true });
    this.strips = h("div", { class: "strip-place" });
    this.element = h(
      "section",
      {
        class: "request",
        tabindex: -1,
        "aria-labelledby": this.titleId,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        onfocusin: () => this.strip?.current(this.#focused()),
      },
      this.head,
      this.strips,
      this.body,
      this.reviewed,
      this.foot.element,
    );
    this.off = room.session.on("rejected", ({ action, reason, refusal }) =>
      this.#rejected(action, reason, refusal),
    );
    this.#build();
  }

  // Building

  #build() {
    for (const view of this.views) view.remove();
    this.views = [];
    this.urls.clear();
    fill(this.body, ...this.group.requests.map((request) => this.#section(request)));
    this.strip = this.views.length > 1 ? new Strip(this.views) : undefined;
    fill(this.strips, this.strip?.element);
    attribute(this.element, "data-long", this.views.length > LONG);
    for (const view of this.views) view.lock(!this.#isHere);
    this.#headed();
    this.update(this.group);
  }

  /** Asked in other words: whoever is in a question stays in it. */
  #rebuild() {
    const focused = this.#focused()?.question.id;
    this.#build();
    if (focused !== undefined) this.focusQuestion(focused);
  }

  /** @param {InputRequest} request */
  #section(request) {
    const isOneOfMany = this.group.requests.length > 1;
    const section = h("div", { class: "request-section", "data-request": request.id });
    if (isOneOfMany && request.message)
      section.append(h("p", { class: "section-message", dir: "auto" }, request.message));
    if (request.url !== undefined) {
      const isOnlyUrl = !isOneOfMany && !request.questions?.length;
      const url = new UrlRequest(request, isOnlyUrl, () => this.refresh());
      this.urls.set(request.id, url);
      section.append(url.element);
    }
    const isAlone = this.group.requests.flatMap(({ questions }) => questions ?? []).length === 1;
    for (const question of request.questions ?? []) {
      const view = new QuestionView(this.room, request.id, question, isAlone, (from) =>
        this.#next(from),
      );
      this.views.push(view);
      section.append(view.element);
    }
    return section;
  }

  #headed() {
    const { room, group, countdown } = this;
    fill(this.head, ...headOf(room, group, this.titleId), countdown.element, this.gone);
  }

  /** @param {Group} group */
  update(group) {
    const isSame = isSameShape(this.group, group);
    this.group = group;
    if (!isSame) {
      this.#stay();
      this.#rebuild();
      return;
    }
    this.countdown.update(group.requests);
    this.#showGone();
    this.#followCompletion();
    this.refresh();
  }

  /** Those of one form are asked by the same program. */
  #showGone() {
    const [since] = this.group.requests.flatMap((request) => goneSince(request) ?? []);
    show(this.gone, since !== undefined);
    const what = "The program that asked is no longer waiting";
    if (since === undefined) say(this.gone, "");
    else say(this.gone, `${what} (since ${timeOf(since)}). Your answer will be kept for it.`);
  }

  /** What is asked has changed: nobody has decided about that yet. */
  #stay() {
    this.leaving?.drop();
    if (this.mode === "leaving") this.#lock(false);
  }

  /** Locked from the moment it is closed here until the host has judged that. */
  #followCompletion() {
    const isSending = this.#completion !== undefined;
    if (isSending !== (this.mode === "sending")) this.#lock(isSending);
  }

  /** What became of it here, and is not confirmed yet. */
  get #completion() {
    const { session } = this.room;
    return session.completions.find(({ requestId }) =>
      this.group.requests.some(({ id }) => id === requestId),
    );
  }

  /** Presence, access or a field changed. */
  refresh() {
    for (const view of this.views) view.update();
    this.marks();
  }

  marks() {
    this.strip?.update();
    if (this.mode === "review") this.#showReview();
    this.#showFoot();
  }

  // The foot

  #showFoot() {
    const { mayAnswer, why } = this.room.access;
    const standings = this.views.map((view) => view.standing());
    const done = this.views.filter((view) => isSettled(view.standing()) || view.field.covered);
    const [url] = this.urls.values();
    attribute(this.element, "aria-describedby", why ? WHY_ID : undefined);
    this.foot.update({
      mode: this.mode,
      mayAnswer,
      questions: this.views.length,
      done: done.length,
      drafts: standings.filter((standing) => standing === "draft").length,
      losers: this.#losers,
      canSubmit: this.views.some(isSent),
      isYesNo: this.#yesNo !== undefined,
      shown: this.#yesNo && truthOf(this.#yesNo),
      isVisit: this.views.length === 0 && this.urls.size > 0,
      isUnvisited: Boolean(url?.isAlone && !url.wasOpened),
      completion: this.#completion,
    });
  }

  /** The question of a form that is answered by Yes or No. */
  get #yesNo() {
    return this.views.find((view) => view.isYesNo);
  }

  /** Whether it is neither on its way nor about to be. */
  get #isHere() {
    return this.mode !== "sending" && this.mode !== "leaving";
  }

  // What people do

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (this.room.access.mayAnswer) this.countdown.pressed();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#acceptPressed();
      return;
    }
    if (event.key === "Escape" && this.#isHere && this.mode !== "form") {
      event.preventDefault();
      this.#show("form");
      return;
    }
    if (this.#yesNo && this.mode === "form" && this.#pointAt(event)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const isHeld = event.altKey || event.ctrlKey || event.metaKey;
    if (step === undefined || isHeld || isText(event.target)) return;
    const at = this.views.findIndex((view) => view === this.#focused());
    const to = this.views[at === -1 ? 0 : at + step];
    if (to === undefined || this.mode !== "form") return;
    event.preventDefault();
    to.focus();
  }

  /**
   * A letter or digit leads to Yes or No; only Enter or Space there sends it.
   * @param {KeyboardEvent} event
   */
  #pointAt(event) {
    const { accept: yes, no } = this.foot;
    const button = { y: yes, 1: yes, n: no, 2: no }[event.key.toLowerCase()];
    if (!button || event.altKey || event.ctrlKey || event.metaKey) return false;
    event.preventDefault();
    this.foot.focus(button);
    return true;
  }

  get hasFocus() {
    return this.element.contains(document.activeElement);
  }

  #focused() {
    return this.views.find((view) => view.element.contains(document.activeElement));
  }

  /** @param {QuestionView} from */
  #next(from) {
    if (from.isAlone && from.value() !== undefined) {
      this.#acceptPressed();
      return;
    }
    const after = this.views.slice(this.views.indexOf(from) + 1);
    const open = after.find((view) => !isSettled(view.standing()));
    if (open) open.focus();
    else this.foot.focus();
    this.marks();
  }

  #submitAll() {
    for (const view of this.views) {
      if (isSent(view)) view.submitNow();
    }
    this.marks();
  }

  #acceptPressed() {
    if (!this.room.access.mayAnswer || !this.#isHere) return;
    if (this.mode === "form" && this.views.length > 1) {
      this.#show("review");
      return;
    }
    if (this.#yesNo && truthOf(this.#yesNo) === undefined) {
      this.foot.focus();
      return;
    }
    const { answers, problems } = acceptanceOf(this.views);
    const [first] = problems;
    if (first) {
      this.#show("form");
      for (const { view, words } of problems) view.complain(words);
      first.view.focus();
      announce(`${counted(problems.length, "question")} to check. ${first.words}`);
    } else {
      this.#sendAnswers(answers);
    }
  }

  /** @param {ReadonlyMap<string, Record<string, Answer>>} answers by request */
  #sendAnswers(answers) {
    if ([...this.urls.values()].every((url) => url.isDone)) this.#complete("accept", answers);
    else this.foot.fail("Open the page above first, and tick that you’re done there.");
  }

  /** @param {boolean} value */
  #sayYesOrNo(value) {
    const view = this.#yesNo;
    if (!view || this.mode !== "form" || !this.room.access.mayAnswer) return;
    /** @type {Answer} */
    const answer = { state: "submitted", value: { kind: "boolean", value } };
    this.#sendAnswers(new Map([[view.requestId, { [view.question.id]: answer }]]));
  }

  /** @param {"decline" | "cancel"} how */
  #askFor(how) {
    if (this.#losers.length > 0) this.#show(how);
    else this.#leave(how);
  }

  get #losers() {
    const { session, me } = this.room;
    return contributors(this.group.requests, session.others, me);
  }

  /** @param {"decline" | "cancel"} how */
  #leave(how) {
    const [first] = this.group.requests;
    const subject = first ? subjectOf(first) : "";
    this.#lock(true, "leaving");
    this.leaving = unlessUndone(
      `${how === "decline" ? "Declining" : "Dismissing"} “${subject}”`,
      () => this.#complete(how),
      () => {
        this.#lock(false);
        this.foot.focus();
      },
    );
  }

  #goBack() {
    const { session } = this.room;
    if (this.mode !== "sending") this.#show("form");
    else for (const { id } of this.group.requests) session.takeBack(id);
  }

  /** @param {Exclude<Mode, "sending">} mode */
  #show(mode) {
    const wasReview = this.mode === "review";
    this.mode = mode;
    const isReview = mode === "review";
    if (isReview) this.#showReview();
    show(this.reviewed, isReview);
    show(this.body, !isReview);
    show(this.strips, !isReview);
    this.foot.fail(undefined);
    this.#showFoot();
    if (isReview) this.#focusReview();
    else if (mode !== "form") this.foot.focus(this.foot.sure);
    else if (wasReview) this.foot.focus();
  }

  /** It is read from its top, however long it is. */
  #focusReview() {
    this.foot.focus();
    this.element.scrollIntoView({ block: "start" });
  }

  #showReview() {
    const { answers } = acceptanceOf(this.views);
    const { requests } = this.group;
    fill(
      this.reviewed,
      reviewOf(this.views, requests, answers, (view) => this.#goTo(view)),
    );
  }

  /** @param {QuestionView} view */
  #goTo(view) {
    this.#show("form");
    view.focus();
  }

  /**
   * @param {Response} response
   * @param {ReadonlyMap<string, Record<string, Answer>>} [answers] by request
   */
  #complete(response, answers) {
    const { session } = this.room;
    session.editing();
    this.foot.fail(undefined);
    this.#lock(true);
    for (const { id } of this.group.requests) {
      const own = response === "accept" ? (answers?.get(id) ?? {}) : undefined;
      session.complete(id, response, own).catch((error) => this.#failed(error));
    }
  }

  /** @param {WireError} error */
  #failed({ code, message, refusal }) {
    this.#followCompletion();
    if (code === "takenBack") this.foot.focus();
    else if (refusal === REVIEW_CHANGED) this.#reviewAgain(message);
    else this.#complain(message);
  }

  /**
   * Refused, maybe long after it was done, by a page that was loaded since.
   * @param {Action} action
   * @param {string} reason
   * @param {string | undefined} refusal
   */
  #rejected(action, reason, refusal) {
    if (action.type !== "session/inputCompleted") return;
    if (!this.group.requests.some(({ id }) => id === action.requestId)) return;
    if (refusal === REVIEW_CHANGED) this.#reviewAgain(reason);
    else this.#complain(reason);
  }

  /** Something else would have been sent than was reviewed: this is what it is now. */
  /** @param {string} words */
  #reviewAgain(words) {
    this.#followCompletion();
    this.#show("review");
    this.foot.fail(words);
    announce(words);
  }

  /** The reason stands at the field that is to blame, or here. */
  /** @param {string} words */
  #complain(words) {
    const blamed = this.views.find((view) => view.field.error);
    const where = blamed && `Not sent: check “${labelOf(blamed.question)}”.`;
    this.foot.fail(where ?? `Not sent. ${words}`);
    blamed?.focus();
  }

  /**
   * @param {boolean} isLocked
   * @param {"sending" | "leaving"} [why]
   */
  #lock(isLocked, why = "sending") {
    // A control that is switched off loses the focus, and it would be lost with the form.
    if (isLocked && this.hasFocus) this.element.focus({ preventScroll: true });
    this.mode = isLocked ? why : "form";
    show(this.reviewed, false);
    show(this.body, true);
    show(this.strips, true);
    for (const view of this.views) view.lock(isLocked);
    for (const url of this.urls.values()) url.enable(!isLocked);
    this.#showFoot();
  }

  /**
   * Goes to a question by its id, or to the first that is not answered.
   * @param {string} [questionId]
   */
  focusQuestion(questionId) {
    const named = this.views.find((view) => view.question.id === questionId);
    const open = this.views.find((view) => !isSettled(view.standing()));
    const [url] = this.urls.values();
    const target = named ?? open ?? this.views[0] ?? url;
    if (target) target.focus();
    else {
      this.element.scrollIntoView({ block: "nearest" });
      this.foot.focus();
    }
  }

  remove() {
    const open = this.room.requests();
    if (this.group.requests.some(({ id }) => open.some((request) => request.id === id)))
      this.leaving?.now();
    else this.leaving?.drop();
    this.off();
    this.countdown.remove();
    for (const view of this.views) view.remove();
  }
}

/** @param {QuestionView} view */
function truthOf(view) {
  const value = view.value();
  return value?.kind === "boolean" ? value.value : undefined;
}

/** @param {EventTarget | null} target */
function isText(target) {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["radio", "checkbox"].includes(target.type);
}
