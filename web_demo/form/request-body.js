// The body of a form: the questions of all its requests, the strip above them, and moving between them.

/** @import { InputRequest } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session/session-context.js" */
/** @import { Group } from "./request-groups.js" */
import { fill, h, show } from "../views/dom.js";
import { QuestionView } from "./question.js";
import { isSettled, QuestionStrip } from "./question-status.js";
import { UrlRequest } from "./url-request.js";

/**
 * `confirmed`: Enter was pressed in a valid question. `visited`: an address was opened or ticked.
 * @typedef {{ confirmed(from: QuestionView): void, visited(): void }} BodyEvents
 */

export class RequestBody {
  /** @type {QuestionView[]} */
  views = [];
  /** @type {UrlRequest[]} */
  urls = [];
  /** @type {QuestionStrip | undefined} */
  strip = undefined;
  stripPlace = h("div", { class: "strip-place" });
  element = h("div", { class: "request-body" });

  /** @param {SessionContext} context @param {BodyEvents} events */
  constructor(context, events) {
    this.context = context;
    this.events = events;
  }

  /** @param {Group} group */
  build({ requests }) {
    this.remove();
    this.views = [];
    this.urls = [];
    const isAlone = requests.flatMap(({ questions }) => questions ?? []).length === 1;
    const sections = requests.map((each) => this.#section(each, requests.length > 1, isAlone));
    fill(this.element, ...sections);
    this.strip = this.views.length > 1 ? new QuestionStrip(this.views) : undefined;
    fill(this.stripPlace, this.strip?.element);
  }

  /**
   * @param {InputRequest} request
   * @param {boolean} isOneOfMany
   * @param {boolean} isAlone there is only one question in the form
   */
  #section(request, isOneOfMany, isAlone) {
    const { id, message, url, questions = [] } = request;
    const section = h("div", { class: "request-section", "data-request": id });
    if (isOneOfMany && message)
      section.append(h("p", { class: "section-message", dir: "auto" }, message));
    if (url !== undefined) {
      const isOnlyUrl = !isOneOfMany && questions.length === 0;
      const view = new UrlRequest(request, isOnlyUrl, () => this.events.visited());
      this.urls.push(view);
      section.append(view.element);
    }
    for (const question of questions) {
      const confirmed = (/** @type {QuestionView} */ from) => this.events.confirmed(from);
      const view = new QuestionView(this.context, id, question, isAlone, confirmed);
      this.views.push(view);
      section.append(view.element);
    }
    return section;
  }

  /** @param {boolean} isShown */
  show(isShown) {
    show(this.element, isShown);
    show(this.stripPlace, isShown);
  }

  /** @param {boolean} isLocked */
  lock(isLocked) {
    for (const view of this.views) view.lock(isLocked);
    for (const url of this.urls) url.enable(!isLocked);
  }

  /** The question that is answered by the buttons Yes and No, if it is the only one. */
  get yesNo() {
    return this.views.find((view) => view.isYesNo);
  }

  get focused() {
    return this.views.find((view) => view.element.contains(document.activeElement));
  }

  markCurrent() {
    this.strip?.current(this.focused);
  }

  /**
   * Focuses a question by its id, or the first that is not answered.
   * @param {string} [questionId]
   * @returns {boolean} whether there is anything to focus
   */
  focus(questionId) {
    const named = this.views.find((view) => view.question.id === questionId);
    const target = named ?? this.#firstOpen(this.views) ?? this.views[0] ?? this.urls[0];
    target?.focus();
    return target !== undefined;
  }

  /**
   * Focuses the next question that is not answered.
   * @param {QuestionView} from
   * @returns {boolean} whether there is one
   */
  focusAfter(from) {
    const next = this.#firstOpen(this.views.slice(this.views.indexOf(from) + 1));
    next?.focus();
    return next !== undefined;
  }

  /** @param {readonly QuestionView[]} views */
  #firstOpen(views) {
    return views.find((view) => !isSettled(view.status()));
  }

  /**
   * The arrow keys move between questions, outside of text.
   * @param {KeyboardEvent} event
   */
  moveByKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const isHeld = event.altKey || event.ctrlKey || event.metaKey;
    if (step === undefined || isHeld || isText(event.target)) return;
    const at = this.views.findIndex((view) => view === this.focused);
    const to = this.views[at === -1 ? 0 : at + step];
    if (to === undefined) return;
    event.preventDefault();
    to.focus();
  }

  remove() {
    for (const view of this.views) view.remove();
  }
}

/** @param {EventTarget | null} target */
function isText(target) {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["radio", "checkbox"].includes(target.type);
}
