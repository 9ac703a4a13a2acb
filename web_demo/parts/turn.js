// A turn: what somebody said, and what came back, part by part.

/** @import { ActiveTurn, ResponsePart, Turn } from "../wire/types.d.ts" */
/** @import { Room } from "../views/room.js" */
/** @import { ItemView } from "../views/keyed.js" */
import { renderMarkdown } from "../text/markdown.js";
import { attribute, fill, h, icon, say, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { KeyedViews } from "../views/keyed.js";
import { plainOf, textBlock } from "./text.js";
import { ToolCallView } from "./tool-call.js";

/** @typedef {{ key: string, part: ResponsePart, isLast: boolean }} Placed */

export class TurnView {
  /**
   * @param {Room} room
   * @param {string} turnId
   */
  constructor(room, turnId) {
    this.room = room;
    this.turnId = turnId;
    this.message = h("div", { class: "message" });
    this.body = h("div", { class: "response" });
    this.ending = h("p", { class: "turn-ending", hidden: true });
    this.working = h(
      "p",
      { class: "working", hidden: true },
      h("span", { class: "working-dots", "aria-hidden": "true" }),
      "Working",
    );
    this.element = h(
      "article",
      { class: "turn", "data-turn": turnId },
      this.message,
      this.body,
      this.working,
      this.ending,
    );
    this.parts = /** @type {KeyedViews<Placed>} */ (
      new KeyedViews(
        this.body,
        (placed) => placed.key,
        (placed) => this.#partView(placed),
      )
    );
  }

  /** @param {Turn | ActiveTurn} turn */
  update(turn) {
    if (turn.message !== this.shownMessage) this.#showMessage(turn);
    if (turn.responseParts !== this.shownParts) this.#showParts(turn);
    this.#showEnding(turn);
  }

  /** @param {Turn | ActiveTurn} turn */
  #showMessage(turn) {
    this.shownMessage = turn.message;
    const { text, origin, attachments } = turn.message;
    const isPersons = origin.kind === "user";
    attribute(this.message, "data-from", isPersons ? "user" : "system");
    attribute(this.element, "aria-label", `Turn: ${text.slice(0, 80)}`);
    show(this.message, text !== "" || (attachments?.length ?? 0) > 0);
    fill(
      this.message,
      isPersons ? null : icon(ICONS.bell),
      h("div", { class: "message-text", dir: "auto" }, text),
      ...(attachments ?? []).map((attachment) =>
        h("bdi", { class: "attachment" }, attachment.label),
      ),
    );
  }

  /** @param {Turn | ActiveTurn} turn */
  #showParts(turn) {
    this.shownParts = turn.responseParts;
    const last = turn.responseParts.length - 1;
    this.parts.update(
      turn.responseParts.map((part, index) => this.#placed(part, index, index === last)),
    );
  }

  /**
   * The same object for the same part, so that only what changed is drawn again.
   * @param {ResponsePart} part
   * @param {number} index
   * @param {boolean} isLast
   */
  #placed(part, index, isLast) {
    const before = this.placed?.[index];
    const placed =
      before?.part === part && before.isLast === isLast
        ? before
        : { key: keyOf(part, index), part, isLast };
    this.placed = this.placed ?? [];
    this.placed[index] = placed;
    return placed;
  }

  /**
   * @param {Placed} placed
   * @returns {ItemView<Placed>}
   */
  #partView({ part }) {
    switch (part.kind) {
      case "markdown":
        return new MarkdownPartView();
      case "reasoning":
        return new ReasoningPartView();
      case "toolCall":
        return new ToolCallPartView(this.room, this.turnId);
      case "systemNotification":
        return new NoteView();
      default:
        return new OtherPartView();
    }
  }

  /** @param {Turn | ActiveTurn} turn */
  #showEnding(turn) {
    const state = "state" in turn ? turn.state : undefined;
    show(this.working, state === undefined && !this.room.isAsking());
    show(this.ending, state === "cancelled" || state === "error");
    attribute(this.ending, "data-state", state);
    const words = "error" in turn && turn.error ? turn.error.message : "It ended in an error.";
    const told = state === "cancelled" ? "Stopped" : words;
    if (this.ending.textContent !== told)
      fill(this.ending, state === "error" && icon(ICONS.warning), h("span", { dir: "auto" }, told));
    attribute(this.element, "data-active", state === undefined);
  }

  /** The tool call in it that waits for a yes or no. */
  asking() {
    const views = this.parts.views().filter((view) => view instanceof ToolCallPartView);
    return views.find(({ view }) => view.isAsking)?.view;
  }

  /** Who may approve, or what is asked, has changed. */
  refresh() {
    show(this.working, !this.room.isAsking());
    for (const view of this.parts.views()) if (view instanceof ToolCallPartView) view.refresh();
  }
}

class MarkdownPartView {
  constructor() {
    this.element = h("div", { class: "prose" });
  }

  /** @param {Placed} placed */
  update({ part }) {
    if (part.kind === "markdown") renderMarkdown(this.element, part.content);
  }
}

class ReasoningPartView {
  constructor() {
    this.title = h("span", null, "Thinking");
    this.words = h("div", { class: "prose reasoning-words" });
    this.element = h(
      "details",
      { class: "reasoning", ontoggle: () => this.#draw() },
      h("summary", null, icon(ICONS.chevron), this.title),
      this.words,
    );
    this.source = "";
  }

  /** @param {Placed} placed */
  update({ part, isLast }) {
    if (part.kind !== "reasoning") return;
    this.source = part.content;
    say(this.title, isLast ? "Thinking" : "Thought about it");
    this.#draw();
  }

  #draw() {
    if (this.element.open) renderMarkdown(this.words, this.source);
  }
}

class ToolCallPartView {
  /**
   * @param {Room} room
   * @param {string} turnId
   */
  constructor(room, turnId) {
    this.view = new ToolCallView(room, turnId);
    this.element = this.view.element;
  }

  /** @param {Placed} placed */
  update({ part }) {
    if (part.kind === "toolCall") this.view.update(part.toolCall);
  }

  refresh() {
    this.view.refresh();
  }
}

/** What the host noted; a card that tells the same at length can stand in its place. */
class NoteView {
  constructor() {
    this.note = h("div", { class: "note" });
    this.element = h("div", { class: "note-place" }, this.note);
  }

  /** @param {Placed} placed */
  update({ part }) {
    if (part.kind === "systemNotification") fill(this.note, textBlock(part.content));
  }
}

class OtherPartView {
  constructor() {
    this.element = h("p", { class: "note", dir: "auto" });
  }

  /** @param {Placed} placed */
  update({ part }) {
    const words =
      part.kind === "contentRef"
        ? `${part.contentType ?? "Content"}: ${part.uri}`
        : "Something this page cannot show";
    say(this.element, words);
  }
}

/**
 * @param {ResponsePart} part
 * @param {number} index
 */
function keyOf(part, index) {
  if (part.kind === "toolCall") return `call ${part.toolCall.toolCallId}`;
  return "id" in part ? `${part.kind} ${part.id}` : `${part.kind} ${index}`;
}

/** @param {readonly ResponsePart[]} parts */
export function lastNote(parts) {
  const note = parts.findLast((part) => part.kind === "systemNotification");
  return note?.kind === "systemNotification" ? plainOf(note.content) : undefined;
}
