// The form of one round: all requests that were asked together, answered together, closed together.

/** @import { InputRequest } from "../wire/types.d.ts" */
/** @import { Room } from "../views/room.js" */
/** @import { Group } from "./groups.js" */
import { announce } from "../views/announcer.js";
import { attribute, fill, h, say, show } from "../views/dom.js";
import { counted } from "../text/words.js";
import { acceptanceOf, isSent } from "./acceptance.js";
import { Countdown } from "./countdown.js";
import { isSameShape } from "./groups.js";
import { QuestionView } from "./question.js";
import { headOf } from "./request-head.js";
import { reviewOf } from "./review.js";
import { Strip } from "./strip.js";
import { UrlRequest } from "./url-request.js";

/** @typedef {"accept" | "decline" | "cancel"} Response */

const LONG = 20;
const ASKS = {
  decline: "Decline for everyone? The asker is told no.",
  cancel: "Cancel for everyone? The asker is told that nobody answered.",
};

/** @param {string} kind @param {string} words @param {() => void} act @param {string} [title] */
const button = (kind, words, act, title) =>
  h("button", { type: "button", class: kind, onclick: act, title }, words);

export class RequestForm {
  progress = h("p", { class: "progress-words", role: "status" });
  failure = h("p", { class: "problem", role: "alert", hidden: true });
  accept = button("primary", "Accept", () => this.#acceptPressed());
  submitAll = button("small quiet", "Submit all", () => this.#submitAll());
  decline = button(
    "decline",
    "Decline",
    () => this.#askFor("decline"),
    "Say no. The asker is told.",
  );
  cancel = button("quiet", "Cancel", () => this.#askFor("cancel"), "Close it without an answer.");
  back = button("quiet", "Back", () => this.#show("form"));
  sure = button("danger", "Decline", () =>
    this.#complete(this.mode === "cancel" ? "cancel" : "decline"),
  );
  foot = h(
    "footer",
    { class: "request-foot" },
    this.failure,
    h("div", { class: "request-progress" }, this.progress, this.submitAll),
    h(
      "div",
      { class: "request-actions" },
      this.back,
      this.cancel,
      this.decline,
      this.sure,
      this.accept,
    ),
  );
  /** @type {QuestionView[]} */
  views = [];
  /** @type {Map<string, UrlRequest>} */
  urls = new Map();
  mode = /** @type {"form" | "review" | "decline" | "cancel" | "sending"} */ ("form");

  /**
   * @param {Room} room
   * @param {Group} group
   */
  constructor(room, group) {
    this.room = room;
    this.group = group;
    this.titleId = `asked-${group.key.replace(/[^\w-]/g, "-")}`;
    this.countdown = new Countdown();
    this.body = h("div", { class: "request-body" });
    this.reviewed = h("div", { class: "request-review", hidden: true });
    this.head = h("header", { class: "request-head" });
    this.strips = h("div", { class: "strip-place" });
    this.element = h(
      "section",
      {
        class: "request",
        "aria-labelledby": this.titleId,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        onfocusin: () => this.strip?.current(this.#focused()),
      },
      this.head,
      this.strips,
      this.body,
      this.reviewed,
      this.foot,
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
      const isAlone = !isOneOfMany && !request.questions?.length;
      const url = new UrlRequest(request, isAlone, () => this.refresh());
      this.urls.set(request.id, url);
      section.append(url.element);
    }
    for (const question of request.questions ?? []) {
      const view = new QuestionView(this.room, request.id, question, (from) => this.#next(from));
      this.views.push(view);
      section.append(view.element);
    }
    return section;
  }

  #headed() {
    const { room, group, countdown } = this;
    fill(this.head, ...headOf(room, group, this.titleId), countdown.element);
  }

  /** @param {Group} group */
  update(group) {
    const isSame = isSameShape(this.group, group);
    this.group = group;
    if (!isSame) {
      this.#rebuild();
      return;
    }
    this.countdown.update(group.requests);
    this.refresh();
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
    const isForm = this.mode === "form";
    const isAsking = this.mode === "decline" || this.mode === "cancel";
    const isSending = this.mode === "sending";
    const isReviewed = this.views.length > 1;
    say(this.progress, this.#words(mayAnswer, why));
    show(this.back, mayAnswer && (this.mode === "review" || isAsking));
    show(this.sure, mayAnswer && isAsking);
    say(this.sure, this.mode === "cancel" ? "Cancel it" : "Decline it");
    show(this.cancel, mayAnswer && !isAsking);
    show(this.decline, mayAnswer && !isAsking);
    show(this.accept, mayAnswer && !isAsking);
    show(this.submitAll, mayAnswer && isForm && isReviewed);
    const [url] = this.urls.values();
    attribute(
      this.accept,
      "title",
      isForm && isReviewed ? "Look through the answers, then accept" : undefined,
    );
    attribute(this.accept, "class", url?.isAlone && !url.wasOpened ? "" : "primary");
    this.submitAll.disabled = !this.views.some(isSent);
    say(
      this.accept,
      isSending ? "Sending…" : isForm && isReviewed ? "Review" : this.#acceptWords(),
    );
    for (const button of [this.accept, this.decline, this.cancel, this.back, this.sure])
      button.disabled = isSending;
  }

  #acceptWords() {
    return this.views.length === 0 && this.urls.size > 0 ? "I’m done" : "Accept";
  }

  /**
   * @param {boolean} mayAnswer
   * @param {string} why
   */
  #words(mayAnswer, why) {
    if (!mayAnswer) return why;
    if (this.mode === "decline" || this.mode === "cancel") return ASKS[this.mode];
    if (this.views.length < 2) return "";
    const done = this.views.filter((view) =>
      ["submitted", "skipped"].includes(view.standing()),
    ).length;
    const drafts = this.views.filter((view) => view.standing() === "draft").length;
    const words = `${done} of ${this.views.length} submitted`;
    return drafts > 0 ? `${words}, ${counted(drafts, "draft")}` : words;
  }

  // What people do

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#acceptPressed();
      return;
    }
    if (event.key === "Escape" && this.mode !== "form" && this.mode !== "sending") {
      event.preventDefault();
      this.#show("form");
      return;
    }
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (
      step === undefined ||
      event.altKey ||
      event.ctrlKey ||
      event.metaKey ||
      isText(event.target)
    )
      return;
    const at = this.views.findIndex((view) => view === this.#focused());
    const to = this.views[at === -1 ? 0 : at + step];
    if (to === undefined || this.mode !== "form") return;
    event.preventDefault();
    to.focus();
  }

  #focused() {
    return this.views.find((view) => view.element.contains(document.activeElement));
  }

  /** @param {QuestionView} from */
  #next(from) {
    const after = this.views.slice(this.views.indexOf(from) + 1);
    const open = after.find((view) => !["submitted", "skipped"].includes(view.standing()));
    if (open) open.focus();
    else this.accept.focus();
    this.marks();
  }

  #submitAll() {
    for (const view of this.views) {
      if (isSent(view)) view.submitNow();
    }
    this.marks();
  }

  #acceptPressed() {
    if (!this.room.access.mayAnswer || this.mode === "sending") return;
    if (this.mode === "form" && this.views.length > 1) {
      this.#show("review");
      return;
    }
    const { problems } = acceptanceOf(this.views);
    const [first] = problems;
    if (first) {
      this.#show("form");
      for (const { view, words } of problems) view.complain(words);
      first.view.focus();
      announce(`${counted(problems.length, "question")} to look at. ${first.words}`);
    } else if ([...this.urls.values()].some((url) => !url.isDone)) {
      this.#fail("Open the page that it asks for, and say when you are done there.");
    } else {
      this.#complete("accept");
    }
  }

  /** @param {"decline" | "cancel"} how */
  #askFor(how) {
    const hasAnswers = this.views.some(
      (view) => view.field.state !== "empty" || view.field.isDirty,
    );
    if (hasAnswers) this.#show(how);
    else this.#complete(how);
  }

  /** @param {"form" | "review" | "decline" | "cancel"} mode */
  #show(mode) {
    const wasReview = this.mode === "review";
    this.mode = mode;
    const isReview = mode === "review";
    if (isReview) this.#showReview();
    show(this.reviewed, isReview);
    show(this.body, !isReview);
    show(this.strips, !isReview);
    this.#fail(undefined);
    this.#showFoot();
    if (isReview) this.#focusReview();
    else if (mode !== "form") this.sure.focus();
    else if (wasReview) this.accept.focus();
  }

  #focusReview() {
    this.element.scrollIntoView({ block: "nearest" });
    this.accept.focus();
  }

  #showReview() {
    fill(
      this.reviewed,
      reviewOf(this.views, (view) => this.#goTo(view)),
    );
  }

  /** @param {QuestionView} view */
  #goTo(view) {
    this.#show("form");
    view.focus();
  }

  /** @param {Response} response */
  async #complete(response) {
    const { answers } = acceptanceOf(response === "accept" ? this.views : []);
    this.#lock(true);
    const { session } = this.room;
    const own = /** @param {string} id */ (id) =>
      response === "accept" ? (answers.get(id) ?? {}) : undefined;
    const sent = this.group.requests.map(({ id }) => session.complete(id, response, own(id)));
    const [failed] = (await Promise.allSettled(sent)).filter((each) => each.status === "rejected");
    if (failed) {
      this.#lock(false);
      this.#fail(failed.reason instanceof Error ? failed.reason.message : String(failed.reason));
      this.views.find((view) => view.field.error)?.focus();
    }
  }

  /** @param {boolean} isLocked */
  #lock(isLocked) {
    this.mode = isLocked ? "sending" : "form";
    show(this.reviewed, false);
    show(this.body, true);
    show(this.strips, true);
    for (const view of this.views) view.lock(isLocked);
    for (const url of this.urls.values()) url.enable(!isLocked);
    this.#showFoot();
  }

  /** @param {string | undefined} words */
  #fail(words) {
    say(this.failure, words ?? "");
    show(this.failure, words !== undefined);
  }

  /**
   * Goes to a question by its id, or to the first that is not answered.
   * @param {string} [questionId]
   */
  focusQuestion(questionId) {
    const named = this.views.find((view) => view.question.id === questionId);
    const open = this.views.find((view) => !["submitted", "skipped"].includes(view.standing()));
    const [url] = this.urls.values();
    const target = named ?? open ?? this.views[0] ?? url;
    if (target) target.focus();
    else this.accept.focus();
  }

  remove() {
    this.countdown.remove();
    for (const view of this.views) view.remove();
  }
}

/** @param {EventTarget | null} target */
function isText(target) {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["radio", "checkbox"].includes(target.type);
}
