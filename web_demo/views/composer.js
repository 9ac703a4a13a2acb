// The message input: starts a turn, queues a message while one runs, and stops the running one.

/** @import { PendingMessage } from "../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
/** @import { Delayed } from "./toasts.js" */
import { NO_AGENT } from "../client/session-list.js";
import { preference, setPreference } from "../client/browser.js";
import { newId } from "../client/tab-identity.js";
import { contributors } from "../form/question-status.js";
import { listed } from "../text/format.js";
import { attribute, fill, h, icon, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { openDialog } from "./overlays.js";
import { unlessUndone } from "./toasts.js";

export class Composer {
  text = h("textarea", {
    class: "field-input composer-text",
    rows: 1,
    dir: "auto",
    "aria-label": "Message",
    oninput: () => this.#typed(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
  });
  send = h(
    "button",
    { type: "button", class: "primary round-button", onclick: () => this.#send() },
    icon(ICONS.arrowUp),
  );
  stop = h(
    "button",
    { type: "button", class: "small", onclick: () => this.stopTurn() },
    icon(ICONS.stop),
    "Stop",
  );
  why = h("p", { class: "why" }, "This session only collects answers. There is no agent to chat with.");
  queue = h("ul", { class: "queue", "aria-label": "Queued messages" });
  box = h("div", { class: "composer-box" }, this.text, this.stop, this.send);
  element = h("div", { class: "composer" }, this.queue, this.box, this.why);

  /** @type {Delayed | undefined} */
  stopping = undefined;
  /** @type {readonly PendingMessage[] | undefined} */
  shownQueue = undefined;

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
    this.key = `composer.${context.session.uri}`;
    this.text.value = preference(this.key) ?? "";
  }

  update() {
    const { state } = this.context.session;
    const { mayDirect } = this.context.access;
    const isPassive = state?.summary.provider === NO_AGENT;
    const isRunning = state?.activeTurn !== undefined;
    // With open questions *Stop* is in the menu, since it closes them for everyone.
    const canStop = isRunning && this.context.requests().length === 0;
    show(this.box, mayDirect && (!isPassive || canStop));
    attribute(this.element, "data-passive", isPassive);
    show(this.text, !isPassive);
    show(this.send, !isPassive);
    show(this.why, mayDirect && isPassive);
    show(this.stop, canStop);
    attribute(
      this.text,
      "placeholder",
      isRunning ? "Next message…" : "Message…",
    );
    const label = isRunning ? "Queue for the next turn" : "Send";
    attribute(this.send, "aria-label", label);
    attribute(this.send, "title", label);
    this.send.disabled = this.text.value.trim() === "";
    this.#showQueue(state?.queuedMessages ?? []);
  }

  /** @param {readonly PendingMessage[]} messages */
  #showQueue(messages) {
    show(this.queue, messages.length > 0);
    if (messages === this.shownQueue) return;
    this.shownQueue = messages;
    fill(this.queue, ...messages.map((message) => this.#queued(message)));
  }

  /** @param {PendingMessage} message */
  #queued({ id, message }) {
    const remove = () =>
      this.context.attempt(
        this.context.session.dispatch({ type: "session/pendingMessageRemoved", kind: "queued", id }),
      );
    return h(
      "li",
      null,
      h("span", { class: "queue-tag" }, "Next"),
      h("bdi", { class: "queue-text" }, message.text),
      this.context.access.mayDirect &&
        h(
          "button",
          { type: "button", class: "icon-button", "aria-label": "Remove from the queue", onclick: remove },
          icon(ICONS.close),
        ),
    );
  }

  #typed() {
    setPreference(this.key, this.text.value || undefined);
    this.send.disabled = this.text.value.trim() === "";
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const isLine = event.shiftKey || matchMedia("(pointer: coarse)").matches;
    const isSent = event.ctrlKey || event.metaKey || !isLine;
    if (event.key === "Enter" && isSent && !event.isComposing) {
      event.preventDefault();
      this.#send();
    } else if (event.key === "Escape") {
      this.text.blur();
    }
  }

  #send() {
    const text = this.text.value.trim();
    if (text === "") return;
    const { session } = this.context;
    const isRunning = session.state?.activeTurn !== undefined;
    const sent = isRunning ? this.#enqueue(text) : session.startTurn(text);
    this.text.value = "";
    this.#typed();
    this.context.attempt(sent, () => this.#giveBack(text));
  }

  /** @param {string} text */
  #enqueue(text) {
    const message = { text, origin: { kind: "user" } };
    return this.context.session.dispatch({
      type: "session/pendingMessageSet",
      kind: "queued",
      id: newId(),
      message,
    });
  }

  /** A refused message goes back into the input. */
  /** @param {string} text */
  #giveBack(text) {
    this.text.value = [text, this.text.value].filter(Boolean).join("\n");
    this.#typed();
  }

  remove() {
    this.stopping?.now();
  }

  /** Also closes open questions: then after confirmation, and with time to undo. */
  stopTurn() {
    const { session, me } = this.context;
    const requests = this.context.requests();
    const affected = contributors(requests, session.others, me);
    if (requests.length === 0) this.#stop();
    else if (affected.length === 0) this.#stopUnlessUndone();
    else this.#confirmStop(affected);
  }

  /** @param {readonly string[]} affected */
  #confirmStop(affected) {
    const sure = () => {
      dialog.close();
      this.#stopUnlessUndone();
    };
    const dialog = openDialog(
      "Stop for everyone?",
      h(
        "p",
        { dir: "auto" },
        `The open questions will be closed. Answers and drafts by ${listed(affected)} will be discarded.`,
      ),
      h(
        "div",
        { class: "dialog-actions" },
        h("button", { type: "button", class: "danger", onclick: sure }, "Stop"),
      ),
    );
  }

  #stopUnlessUndone() {
    this.stopping?.drop();
    this.stopping = unlessUndone("Stopping, with the open questions", () => this.#stop());
  }

  #stop() {
    if (this.context.session.state?.activeTurn) this.context.attempt(this.context.session.cancelTurn());
  }
}
