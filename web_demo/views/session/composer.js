// The message input: starts a turn, queues a message while one runs, and stops the running one.

/** @import { PendingMessage } from "../../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
/** @import { Delayed } from "../toasts.js" */
import { NO_AGENT } from "../../client/session-list.js";
import { preference, setPreference } from "../../client/browser.js";
import { contributors } from "../../form/authors.js";
import { listed } from "../../text/format.js";
import { attribute, fill, h, icon, iconButton, show } from "../dom.js";
import { ICONS } from "../icons.js";
import { openDialog } from "../overlays.js";
import { unlessUndone } from "../toasts.js";

export class Composer {
  text = h("textarea", {
    class: "field-input composer-text",
    rows: 1,
    dir: "auto",
    "aria-label": "Message",
    oninput: () => this.#typed(),
    onkeydown: (event) => this.#key(event),
  });
  send = iconButton(ICONS.arrowUp, "Send", () => this.#send(), { class: "primary round-button" });
  stop = h("button", { class: "small", onclick: () => this.stopTurn() }, icon(ICONS.stop), "Stop");
  why = h("p", { class: "hint" }, "This session only collects answers. There is no agent to chat with.");
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
    attribute(this.text, "placeholder", isRunning ? "Next message…" : "Message…");
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
    if (document.activeElement === this.text) this.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {PendingMessage} message */
  #queued({ id, message }) {
    const { session } = this.context;
    const remove = () =>
      this.context.attempt(session.dispatch({ type: "session/pendingMessageRemoved", kind: "queued", id }));
    return h(
      "li",
      { class: "row" },
      h("span", { class: "faint" }, "Next"),
      h("bdi", { class: "queue-text one-line" }, message.text),
      this.context.access.mayDirect &&
        iconButton(ICONS.close, "Remove from the queue", remove),
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
    const sent = isRunning ? session.queueMessage(text) : session.startTurn(text);
    this.text.value = "";
    this.#typed();
    this.context.attempt(sent, () => {
      this.text.value = [text, this.text.value].filter(Boolean).join("\n");
      this.#typed();
    });
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
    const lost = `Answers and drafts by ${listed(affected)} will be discarded.`;
    const dialog = openDialog(
      "Stop for everyone?",
      h("p", { dir: "auto" }, `The open questions will be closed. ${lost}`),
      h("div", { class: "dialog-actions" }, h("button", { class: "danger", onclick: sure }, "Stop")),
    );
  }

  #stopUnlessUndone() {
    this.stopping?.drop();
    this.stopping = unlessUndone("Stopping, with the open questions", () => this.#stop());
  }

  #stop() {
    this.context.attempt(this.context.session.cancelTurn());
  }
}
