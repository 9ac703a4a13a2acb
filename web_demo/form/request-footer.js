// The footer of a form: progress, and the buttons to send, decline or dismiss it.

/** @import { Completion } from "../client/outbox.js" */
import { counted, listed } from "../text/format.js";
import { attribute, h, setText, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { Menu } from "../views/overlays.js";

/** @typedef {"form" | "review" | "decline" | "cancel" | "leaving" | "sending"} Mode */

/**
 * @typedef {{
 *   accept(): void, no(): void, submitAll(): void, decline(): void, cancel(): void, back(): void,
 *   sure(): void,
 * }} FooterActions
 */

/**
 * `isYesNo`: the single question is answered by the buttons here, and `shown` is its draft or default.
 * `affected`: whose answers and drafts would be lost with the form. `isVisit`: there is only an
 * address to visit. `done`, `drafts`: questions.
 * @typedef {{
 *   mode: Mode, mayAnswer: boolean, questions: number, done: number, drafts: number,
 *   affected: readonly string[], canSubmit: boolean, isYesNo: boolean, shown: boolean | undefined,
 *   isVisit: boolean, isUnvisited: boolean, completion: Completion | undefined,
 * }} FooterState
 */

const ASKS = {
  decline: "Decline for everyone? The agent receives “no” as the answer.",
  cancel: "Dismiss without answering? The agent learns that nobody answered.",
};
const WAITS = {
  accept: "You’re offline. Your answers will be sent when you reconnect.",
  decline: "You’re offline. Your “Decline” will be sent when you reconnect.",
  cancel: "You’re offline. Your “Dismiss” will be sent when you reconnect.",
};
const IN_DOUBT =
  "The connection was lost before the host confirmed this. It will be sent again when you reconnect.";

/** @param {string} kind @param {string} label @param {() => void} act @param {string} [title] */
const button = (kind, label, act, title) =>
  h("button", { class: kind, onclick: act, title }, label);

export class RequestFooter {
  progress = h("p", { class: "progress-text hint", role: "status" });
  canSubmit = false;
  failure = h("p", { class: "problem", role: "alert", hidden: true });

  /** @param {FooterActions} actions */
  constructor(actions) {
    this.accept = button("primary", "Send answers", actions.accept);
    this.no = button("", "No", actions.no);
    this.decline = button("decline", "Decline", actions.decline, "The agent receives “no” as the answer.");
    this.menu = new Menu("More actions", () => [
      this.canSubmit && { label: "Mark all done", icon: ICONS.check, act: actions.submitAll },
      { label: "Dismiss without answering", icon: ICONS.close, act: actions.cancel },
    ]);
    this.back = button("quiet", "Back", actions.back);
    this.sure = button("danger", "Decline", actions.sure);
    this.element = h(
      "footer",
      { class: "request-foot row" },
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

  /** @param {FooterState} state */
  update(state) {
    const { mode, mayAnswer } = state;
    const isAsking = mode === "decline" || mode === "cancel";
    const isSending = mode === "sending" || mode === "leaving";
    const isWaiting = isSending && state.completion?.isSent === false;
    show(this.element, mayAnswer);
    setText(this.progress, progressText(state));
    const canBeWithdrawn = isWaiting && !state.completion?.mayHaveArrived;
    show(this.back, mode === "review" || isAsking || canBeWithdrawn);
    setText(this.back, isSending ? "Don’t send" : "Back");
    show(this.sure, isAsking);
    setText(this.sure, mode === "cancel" ? "Dismiss" : "Decline");
    for (const button of [this.menu.element, this.decline]) show(button, mode === "form");
    show(this.accept, !isAsking && mode !== "leaving");
    attribute(this.element, "data-mode", mode);
    this.canSubmit = mode === "form" && state.questions > 1 && state.canSubmit;
    for (const button of [this.accept, this.decline, this.menu.button, this.sure])
      button.disabled = isSending;
    this.#showAccept(state, isWaiting);
  }

  /** @param {FooterState} state @param {boolean} isWaiting */
  #showAccept(state, isWaiting) {
    const { mode, isYesNo, shown, isUnvisited } = state;
    const isPlain = isUnvisited || (isYesNo && shown === false);
    attribute(this.accept, "class", isPlain ? "" : "primary");
    attribute(this.no, "class", shown === false ? "primary" : "");
    show(this.no, isYesNo && mode === "form");
    const sends = isWaiting ? "Waiting…" : "Sending…";
    setText(this.accept, mode === "sending" ? sends : primaryText(state));
  }

  /** It is always visible, so nothing scrolls. */
  focus(button = this.accept) {
    button.focus({ preventScroll: true });
  }

  /** @param {string | undefined} text */
  fail(text) {
    setText(this.failure, text ?? "");
    show(this.failure, text !== undefined);
  }
}

/** @param {FooterState} state */
function primaryText({ mode, questions, isYesNo, isVisit }) {
  if (isVisit) return "I’m done";
  if (isYesNo) return "Yes";
  if (questions === 0) return "Accept";
  if (questions === 1) return "Send answer";
  return mode === "review" ? "Send answers" : "Review answers";
}

/** @param {FooterState} state */
function progressText({ mode, questions, done, drafts, affected, completion }) {
  if (mode === "sending") return waitingText(completion);
  if (mode === "decline" || mode === "cancel")
    return `${ASKS[mode]} Answers and drafts by ${listed(affected)} will be discarded.`;
  if (mode === "leaving") return "Closing this form for everyone. You can still undo it.";
  if (mode === "review" || questions < 2) return "";
  const text = `${done} of ${questions} ready`;
  if (done === questions) return `${text}, not sent yet`;
  return drafts > 0 ? `${text}, ${counted(drafts, "draft")}` : text;
}

/** @param {Completion | undefined} completion */
function waitingText(completion) {
  if (!completion || completion.isSent) return "";
  return completion.mayHaveArrived ? IN_DOUBT : WAITS[completion.response];
}
