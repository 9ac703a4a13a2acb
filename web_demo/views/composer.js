// Where a turn is started, one more is queued while it runs, and the running one is stopped.

/** @import { PendingMessage } from "../wire/types.d.ts" */
/** @import { Room } from "./room.js" */
/** @import { Delayed } from "./toast.js" */
import { attribute, fill, h, icon, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { openDialog } from "./dialog.js";
import { unlessUndone } from "./toast.js";
import { contributors } from "../form/states.js";
import { listed } from "../text/words.js";
import { recall, remember } from "./memory.js";
import { newId } from "../wire/ids.js";

const PASSIVE = "people";

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

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
    this.key = `composer.${room.session.uri}`;
    this.text.value = recall(this.key) ?? "";
  }

  update() {
    const { state } = this.room.session;
    const { mayDirect } = this.room.access;
    const isPassive = state?.summary.provider === PASSIVE;
    const isRunning = state?.activeTurn !== undefined;
    // With questions open it is in the menu: it would end them for everyone.
    const canStop = isRunning && this.room.requests().length === 0;
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
    const words = isRunning ? "Queue for the next turn" : "Send";
    attribute(this.send, "aria-label", words);
    attribute(this.send, "title", words);
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
      this.room.attempt(
        this.room.session.dispatch({ type: "session/pendingMessageRemoved", kind: "queued", id }),
      );
    return h(
      "li",
      null,
      h("span", { class: "queue-tag" }, "Next"),
      h("bdi", { class: "queue-text" }, message.text),
      this.room.access.mayDirect &&
        h(
          "button",
          { type: "button", class: "icon-button", "aria-label": "Remove from the queue", onclick: remove },
          icon(ICONS.close),
        ),
    );
  }

  #typed() {
    remember(this.key, this.text.value || undefined);
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
    const { session } = this.room;
    const isRunning = session.state?.activeTurn !== undefined;
    const sent = isRunning ? this.#enqueue(text) : session.startTurn(text);
    this.text.value = "";
    this.#typed();
    this.room.attempt(sent, () => this.#giveBack(text));
  }

  /** @param {string} text */
  #enqueue(text) {
    const message = { text, origin: { kind: "user" } };
    return this.room.session.dispatch({
      type: "session/pendingMessageSet",
      kind: "queued",
      id: newId(),
      message,
    });
  }

  /** What was refused is not lost. */
  /** @param {string} text */
  #giveBack(text) {
    this.text.value = [text, this.text.value].filter(Boolean).join("\n");
    this.#typed();
  }

  remove() {
    this.stopping?.now();
  }

  /** Ends the open questions too: at once where there are none, and otherwise unless it is undone. */
  stopTurn() {
    const { session, me } = this.room;
    const requests = this.room.requests();
    const losers = contributors(requests, session.others, me);
    if (requests.length === 0) this.#stop();
    else if (losers.length === 0) this.#stopUnlessUndone();
    else this.#confirmStop(losers);
  }

  /** @param {readonly string[]} losers */
  #confirmStop(losers) {
    const sure = () => {
      dialog.close();
      this.#stopUnlessUndone();
    };
    const dialog = openDialog(
      "Stop for everyone?",
      h(
        "p",
        { dir: "auto" },
        `The open questions will be closed. Answers and drafts by ${listed(losers)} will be discarded.`,
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
    if (this.room.session.state?.activeTurn) this.room.attempt(this.room.session.cancelTurn());
  }
}
