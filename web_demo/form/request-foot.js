// The foot of a form: how far it is, and the ways out of it, always in view and locked once used.

/** @import { Completion } from "../wire/completions.js" */
import { attribute, h, say, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { Menu } from "../views/menu.js";
import { counted, listed } from "../text/words.js";

/** @typedef {"form" | "review" | "decline" | "cancel" | "leaving" | "sending"} Mode */

/**
 * @typedef {{
 *   accept(): void, no(): void, submitAll(): void, decline(): void, cancel(): void, back(): void, sure(): void,
 * }} Ways
 */

/**
 * `isYesNo`: the single question is answered by the buttons here, and `shown` is its draft or default.
 * `losers`: whose answers and drafts would be lost with the form. `isVisit`: there is nothing to answer but a page to go to. `done`, `drafts`: questions.
 * @typedef {{
 *   mode: Mode, mayAnswer: boolean, questions: number, done: number, drafts: number,
 *   losers: readonly string[], canSubmit: boolean, isYesNo: boolean, shown: boolean | undefined, isVisit: boolean, isUnvisited: boolean, completion: Completion | undefined,
 * }} Stand
 */

const ASKS = {
  decline: "Decline for everyone? The agent will be told “no”.",
  cancel: "Dismiss without answering? The agent will be told nobody answered.",
};
const WAITS = {
  accept: "You’re offline. Your answers will be sent when you reconnect.",
  decline: "You’re offline. Your “Decline” will be sent when you reconnect.",
  cancel: "You’re offline. Your “Dismiss” will be sent when you reconnect.",
};
const IN_DOUBT = "The connection was lost before the host confirmed this. It will be sent again when you reconnect.";

/** @param {string} kind @param {string} words @param {() => void} act @param {string} [title] */
const button = (kind, words, act, title) =>
  h("button", { type: "button", class: kind, onclick: act, title }, words);

export class RequestFoot {
  progress = h("p", { class: "progress-words", role: "status" });
  canSubmit = false;
  failure = h("p", { class: "problem", role: "alert", hidden: true });

  /** @param {Ways} ways */
  constructor(ways) {
    this.accept = button("primary", "Send answers", ways.accept);
    this.no = button("", "No", ways.no);
    this.decline = button("decline", "Decline", ways.decline, "Say no. The agent is told.");
    this.menu = new Menu("More actions", () => [
      this.canSubmit && { words: "Mark all done", icon: ICONS.check, act: ways.submitAll },
      { words: "Dismiss without answering", icon: ICONS.close, act: ways.cancel },
    ]);
    this.back = button("quiet", "Back", ways.back);
    this.sure = button("danger", "Decline", ways.sure);
    this.element = h(
      "footer",
      { class: "request-foot" },
      this.failure,
      this.progress,
      h(
        "div",
        { class: "request-actions" },
        this.back,
        this.menu.element,
        this.decline,
        this.sure,
        this.no,
        this.accept,
      ),
    );
  }

  /** @param {Stand} stand */
  update(stand) {
    const { mode, mayAnswer } = stand;
    const isAsking = mode === "decline" || mode === "cancel";
    const isSending = mode === "sending" || mode === "leaving";
    const isWaiting = isSending && stand.completion?.isSent === false;
    show(this.element, mayAnswer);
    say(this.progress, wordsOf(stand));
    const canBeTakenBack = isWaiting && !stand.completion?.mayBeThere;
    show(this.back, mode === "review" || isAsking || canBeTakenBack);
    say(this.back, isSending ? "Don’t send" : "Back");
    show(this.sure, isAsking);
    say(this.sure, mode === "cancel" ? "Dismiss" : "Decline");
    for (const way of [this.menu.element, this.decline]) show(way, mode === "form");
    show(this.accept, !isAsking && mode !== "leaving");
    attribute(this.element, "data-mode", mode);
    this.canSubmit = mode === "form" && stand.questions > 1 && stand.canSubmit;
    for (const way of [this.accept, this.decline, this.menu.button, this.sure]) way.disabled = isSending;
    this.#showAccept(stand, isWaiting);
  }

  /**
   * @param {Stand} stand
   * @param {boolean} isWaiting
   */
  #showAccept(stand, isWaiting) {
    const { mode, isYesNo, shown, isUnvisited } = stand;
    const isPlain = isUnvisited || (isYesNo && shown === false);
    attribute(this.accept, "class", isPlain ? "" : "primary");
    attribute(this.no, "class", shown === false ? "primary" : "");
    show(this.no, isYesNo && mode === "form");
    const sends = isWaiting ? "Waiting…" : "Sending…";
    say(this.accept, mode === "sending" ? sends : primaryText(stand));
  }

  /** It is in view wherever its form is, so that nothing scrolls. */
  focus(button = this.accept) {
    button.focus({ preventScroll: true });
  }

  /** @param {string | undefined} words */
  fail(words) {
    say(this.failure, words ?? "");
    show(this.failure, words !== undefined);
  }
}

/** @param {Stand} stand */
function primaryText({ mode, questions, isYesNo, isVisit }) {
  if (isVisit) return "I’m done";
  if (isYesNo) return "Yes";
  if (questions === 0) return "Accept";
  if (questions === 1) return "Send answer";
  return mode === "review" ? "Send answers" : "Review answers";
}

/** @param {Stand} stand */
function wordsOf({ mode, questions, done, drafts, losers, completion }) {
  if (mode === "sending") return waitingWords(completion);
  if (mode === "decline" || mode === "cancel")
    return `${ASKS[mode]} Answers and drafts by ${listed(losers)} will be discarded.`;
  if (mode === "leaving") return "Closing this form for everyone. You can still undo it.";
  if (mode === "review" || questions < 2) return "";
  const words = `${done} of ${questions} ready`;
  if (done === questions) return `${words}, not sent yet`;
  return drafts > 0 ? `${words}, ${counted(drafts, "draft")}` : words;
}

/** @param {Completion | undefined} completion */
function waitingWords(completion) {
  if (!completion || completion.isSent) return "";
  return completion.mayBeThere ? IN_DOUBT : WAITS[completion.response];
}
