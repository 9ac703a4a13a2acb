// The form of one round: all requests that were asked together are answered and closed together.

/** @import { ClientError } from "../client/errors.js" */
/** @import { Action, Answer } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session/session-context.js" */
/** @import { Delayed } from "../views/toasts.js" */
/** @import { QuestionView } from "./question.js" */
/** @import { Mode } from "./request-footer.js" */
/** @import { Group } from "./request-groups.js" */
import { same } from "../client/reducers/updates.js";
import { REVIEW_CHANGED } from "../client/session.js";
import { counted, labelOf, subjectOf } from "../text/format.js";
import { WHY_ID } from "../views/access.js";
import { attribute, fill, h, show } from "../views/dom.js";
import { announce, unlessUndone } from "../views/toasts.js";
import { acceptanceOf, isSent, reviewOf } from "./answer-review.js";
import { contributors } from "./authors.js";
import { isSettled } from "./question-status.js";
import { RequestBody } from "./request-body.js";
import { RequestFooter } from "./request-footer.js";
import { isSameShape } from "./request-groups.js";
import { RequestHeader } from "./request-header.js";

/** @typedef {"accept" | "decline" | "cancel"} Response */

const LONG = 20;

export class RequestForm {
  footer = new RequestFooter({
    accept: () => (this.body.yesNo ? this.#answerYesNo(true) : this.#acceptPressed()),
    no: () => this.#answerYesNo(false),
    submitAll: () => this.#submitAll(),
    decline: () => this.#confirmLeaving("decline"),
    cancel: () => this.#confirmLeaving("cancel"),
    back: () => this.#back(),
    sure: () => this.#leave(this.mode === "cancel" ? "cancel" : "decline"),
  });
  mode = /** @type {Mode} */ ("form");
  /** @type {Delayed | undefined} */
  leaving = undefined;
  /** @type {object | undefined} what all questions show besides their fields, as drawn last */
  shared = undefined;

  /** @param {SessionContext} context @param {Group} group */
  constructor(context, group) {
    this.context = context;
    this.group = group;
    this.titleId = `asked-${group.key.replace(/[^\w-]/g, "-")}`;
    this.header = new RequestHeader(context, this.titleId);
    this.body = new RequestBody(context, {
      confirmed: (from) => this.#next(from),
      visited: () => this.#drawOverview(),
    });
    this.reviewed = h("div", { class: "request-review", hidden: true });
    this.element = h(
      "section",
      {
        class: "request",
        tabindex: -1,
        "aria-labelledby": this.titleId,
        onkeydown: (event) => this.#key(event),
        onfocusin: () => this.body.markCurrent(),
      },
      this.header.element,
      this.body.stripPlace,
      this.body.element,
      this.reviewed,
      this.footer.element,
    );
    this.off = context.session.on("rejected", ({ action, reason, refusal }) =>
      this.#rejected(action, reason, refusal),
    );
    this.#build();
  }

  // Building

  #build() {
    this.body.build(this.group);
    attribute(this.element, "data-long", this.views.length > LONG);
    for (const view of this.views) view.lock(!this.#isOpen);
    this.header.build(this.group);
    this.shared = undefined;
    this.#draw();
  }

  get views() {
    return this.body.views;
  }

  /**
   * The group, one of its fields, presence or access may have changed.
   *
   * @param {Group} group
   */
  update(group) {
    const isSame = isSameShape(this.group, group);
    this.group = group;
    if (!isSame) {
      this.#questionsChanged();
      return;
    }
    this.#draw();
  }

  #draw() {
    this.header.update(this.group);
    this.#followCompletion();
    this.#drawQuestions();
    this.#drawOverview();
  }

  /**
   * A question draws itself when its field changes. All of them are drawn when something else changes that
   * they show: whether the viewer may answer, who the viewer is, and who else is here and types.
   */
  #drawQuestions() {
    const { access, me, session } = this.context;
    const shared = { mayAnswer: access.mayAnswer, me, others: session.others };
    if (same(shared, this.shared)) return;
    this.shared = shared;
    for (const view of this.views) view.update();
  }

  /** What is shown about all questions together: the strip, the review and the footer. */
  #drawOverview() {
    this.body.strip?.update();
    if (this.mode === "review") this.#showReview();
    this.#showFooter();
  }

  /** A pending decline or dismissal does not apply; the focus stays in the same question. */
  #questionsChanged() {
    this.leaving?.drop();
    if (this.mode === "leaving") this.#lock(false);
    const focused = this.body.focused?.question.id;
    this.#build();
    if (focused !== undefined) this.focusQuestion(focused);
  }

  /** Locked from sending until the host has confirmed or refused it. */
  #followCompletion() {
    const isSending = this.#completion !== undefined;
    if (isSending !== (this.mode === "sending")) this.#lock(isSending);
  }

  /** The completion that is not confirmed yet, if any. */
  get #completion() {
    const { session } = this.context;
    return session.completions.find(({ requestId }) =>
      this.group.requests.some(({ id }) => id === requestId),
    );
  }

  // The footer

  #showFooter() {
    const { mayAnswer, why } = this.context.access;
    const statuses = this.views.map((view) => view.status());
    const done = this.views.filter((view) => isSettled(view.status()) || view.field.covered);
    const [url] = this.body.urls;
    attribute(this.element, "aria-describedby", why ? WHY_ID : undefined);
    this.footer.update({
      mode: this.mode,
      mayAnswer,
      questions: this.views.length,
      done: done.length,
      drafts: statuses.filter((status) => status === "draft").length,
      affected: this.#affected,
      canSubmit: this.views.some(isSent),
      isYesNo: this.body.yesNo !== undefined,
      shown: booleanOf(this.body.yesNo),
      isVisit: this.views.length === 0 && url !== undefined,
      isUnvisited: Boolean(url?.isAlone && !url.wasOpened),
      completion: this.#completion,
    });
  }

  /** Whether it is not being sent or closed. */
  get #isOpen() {
    return this.mode !== "sending" && this.mode !== "leaving";
  }

  // Input

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (this.context.access.mayAnswer) this.header.countdown.pressed();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#acceptPressed();
      return;
    }
    if (event.key === "Escape" && this.#isOpen && this.mode !== "form") {
      event.preventDefault();
      this.#show("form");
      return;
    }
    if (this.body.yesNo && this.mode === "form" && this.#focusYesNo(event)) return;
    if (this.mode === "form") this.body.moveByKey(event);
  }

  /**
   * A letter or digit focuses Yes or No; only Enter or Space sends it.
   * @param {KeyboardEvent} event
   */
  #focusYesNo(event) {
    const { accept: yes, no } = this.footer;
    const button = { y: yes, 1: yes, n: no, 2: no }[event.key.toLowerCase()];
    if (!button || event.altKey || event.ctrlKey || event.metaKey) return false;
    event.preventDefault();
    this.footer.focus(button);
    return true;
  }

  get hasFocus() {
    return this.element.contains(document.activeElement);
  }

  /** @param {QuestionView} from */
  #next(from) {
    if (from.isAlone && from.value() !== undefined) {
      this.#acceptPressed();
      return;
    }
    if (!this.body.focusAfter(from)) this.footer.focus();
    this.#drawOverview();
  }

  #submitAll() {
    for (const view of this.views) {
      if (isSent(view)) view.submitNow();
    }
    this.#drawOverview();
  }

  #acceptPressed() {
    if (!this.context.access.mayAnswer || !this.#isOpen) return;
    if (this.mode === "form" && this.views.length > 1) {
      this.#show("review");
      return;
    }
    if (this.body.yesNo && booleanOf(this.body.yesNo) === undefined) {
      this.footer.focus();
      return;
    }
    const { answers, problems } = acceptanceOf(this.views);
    const [first] = problems;
    if (first) {
      this.#show("form");
      for (const { view, text } of problems) view.showError(text);
      first.view.focus();
      announce(`${counted(problems.length, "question")} to check. ${first.text}`);
    } else {
      this.#sendAnswers(answers);
    }
  }

  /** @param {ReadonlyMap<string, Record<string, Answer>>} answers by request */
  #sendAnswers(answers) {
    if (this.body.urls.every((url) => url.isDone)) this.#complete("accept", answers);
    else this.footer.fail("Open the page above first, and tick that you’re done there.");
  }

  /** @param {boolean} value */
  #answerYesNo(value) {
    const view = this.body.yesNo;
    if (!view || this.mode !== "form" || !this.context.access.mayAnswer) return;
    /** @type {Answer} */
    const answer = { state: "submitted", value: { kind: "boolean", value } };
    this.#sendAnswers(new Map([[view.requestId, { [view.question.id]: answer }]]));
  }

  /** @param {"decline" | "cancel"} how */
  #confirmLeaving(how) {
    if (this.#affected.length > 0) this.#show(how);
    else this.#leave(how);
  }

  get #affected() {
    const { session, me } = this.context;
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
        this.footer.focus();
      },
    );
  }

  #back() {
    const { session } = this.context;
    if (this.mode !== "sending") this.#show("form");
    else for (const { id } of this.group.requests) session.withdraw(id);
  }

  /** @param {"form" | "review" | "decline" | "cancel"} mode */
  #show(mode) {
    const wasReview = this.mode === "review";
    this.mode = mode;
    const isReview = mode === "review";
    if (isReview) this.#showReview();
    show(this.reviewed, isReview);
    this.body.show(!isReview);
    this.footer.fail(undefined);
    this.#showFooter();
    if (mode === "decline" || mode === "cancel") this.footer.focus(this.footer.sure);
    else if (isReview || wasReview) this.footer.focus();
    if (isReview) this.element.scrollIntoView({ block: "start" }); // a long one starts at its top
  }

  #showReview() {
    const { answers } = acceptanceOf(this.views);
    const goTo = (/** @type {QuestionView} */ view) => {
      this.#show("form");
      view.focus();
    };
    fill(this.reviewed, reviewOf(this.views, this.group.requests, answers, goTo));
  }

  /**
   * @param {Response} response
   * @param {ReadonlyMap<string, Record<string, Answer>>} [answers] by request
   */
  #complete(response, answers) {
    const { session } = this.context;
    session.stopTyping();
    this.footer.fail(undefined);
    this.#lock(true);
    for (const { id } of this.group.requests) {
      const own = response === "accept" ? (answers?.get(id) ?? {}) : undefined;
      session.complete(id, response, own).catch((error) => this.#failed(error));
    }
  }

  /** @param {ClientError} error */
  #failed({ code, message, refusal }) {
    this.#followCompletion();
    if (code === "withdrawn") this.footer.focus();
    else if (refusal === REVIEW_CHANGED) this.#reviewAgain(message);
    else this.#complain(message);
  }

  /**
   * Refused, maybe after a reload of the page that sent it.
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

  /** An answer changed since the review: shows the new review. */
  /** @param {string} text */
  #reviewAgain(text) {
    this.#followCompletion();
    this.#show("review");
    this.footer.fail(text);
    announce(text);
  }

  /** The reason is shown at the field that caused it, or in the footer. */
  /** @param {string} text */
  #complain(text) {
    const invalid = this.views.find((view) => view.field.error);
    const where = invalid && `Not sent: check “${labelOf(invalid.question)}”.`;
    this.footer.fail(where ?? `Not sent. ${text}`);
    invalid?.focus();
  }

  /** @param {boolean} isLocked @param {"sending" | "leaving"} [why] */
  #lock(isLocked, why = "sending") {
    // A disabled control would lose the focus.
    if (isLocked && this.hasFocus) this.element.focus({ preventScroll: true });
    this.mode = isLocked ? why : "form";
    show(this.reviewed, false);
    this.body.show(true);
    this.body.lock(isLocked);
    this.#showFooter();
  }

  /**
   * Goes to a question by its id, or to the first that is not answered.
   * @param {string} [questionId]
   */
  focusQuestion(questionId) {
    if (this.body.focus(questionId)) return;
    this.element.scrollIntoView({ block: "nearest" });
    this.footer.focus();
  }

  remove() {
    const open = this.context.requests();
    if (this.group.requests.some(({ id }) => open.some((request) => request.id === id)))
      this.leaving?.now();
    else this.leaving?.drop();
    this.off();
    this.header.remove();
    this.body.remove();
  }
}

/** @param {QuestionView | undefined} view */
function booleanOf(view) {
  const value = view?.value();
  return value?.kind === "boolean" ? value.value : undefined;
}
