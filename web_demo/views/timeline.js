// The turns of a session, latest at the bottom. Long histories are drawn from the end, and more
// while scrolling up.

/** @import { ActiveTurn, ResponsePart, SessionState, Turn } from "../client/types.d.ts" */
/** @import { ItemView } from "./dom.js" */
/** @import { SessionContext } from "./session-context.js" */
import { renderMarkdown } from "../text/markdown.js";
import { plainOf, textBlock } from "./content.js";
import { attribute, fill, h, icon, KeyedViews, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { ToolCallView } from "./tool-call.js";

const FIRST = 20;
const PIECE = 40;

export class Timeline {
  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
    this.drawn = FIRST;
    this.earlier = h(
      "button",
      { type: "button", class: "quiet earlier", onclick: () => this.more() },
      "Show earlier turns",
    );
    this.list = h("div", { class: "turns" });
    this.element = h(
      "div",
      { class: "timeline", role: "log", "aria-label": "Turns", "aria-live": "off" },
      this.earlier,
      this.list,
    );
    /** @type {KeyedViews<Turn | ActiveTurn>} */
    this.turns = new KeyedViews(
      this.list,
      (turn) => turn.id,
      (turn) => new TurnView(context, turn.id),
    );
    this.watcher = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) this.more();
    });
    this.watcher.observe(this.earlier);
  }

  /** @param {SessionState} state */
  update(state) {
    this.state = state;
    const all = state.activeTurn ? [...state.turns, state.activeTurn] : state.turns;
    const from = Math.max(0, all.length - this.drawn);
    show(this.earlier, from > 0);
    this.turns.update(all.slice(from));
    for (const view of this.turns.views())
      if (view instanceof TurnView && view.element.dataset["active"] !== undefined) view.refresh();
  }

  more() {
    if (!this.state || this.earlier.hidden) return;
    const before = this.element.scrollHeight;
    const scroller = this.element.closest(".scroller");
    this.drawn += PIECE;
    this.update(this.state);
    // Keeps the visible text in place.
    if (scroller) scroller.scrollTop += this.element.scrollHeight - before;
    // Still in view: the observer would not fire again.
    this.watcher.unobserve(this.earlier);
    this.watcher.observe(this.earlier);
  }

  /** The first tool call that waits for approval. */
  asking() {
    for (const view of this.turns.views()) {
      const call = view instanceof TurnView ? view.asking() : undefined;
      if (call) return call;
    }
    return undefined;
  }

  remove() {
    this.watcher.disconnect();
  }
}

// One turn: the message, and the response part by part.

/** @typedef {{ key: string, part: ResponsePart, isLast: boolean }} Placed */

export class TurnView {
  /** @param {SessionContext} context @param {string} turnId */
  constructor(context, turnId) {
    this.context = context;
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

  /** @param {Placed} placed @returns {ItemView<Placed>} */
  #partView({ part }) {
    switch (part.kind) {
      case "markdown":
        return new MarkdownPartView();
      case "reasoning":
        return new ReasoningPartView();
      case "toolCall":
        return new ToolCallPartView(this.context, this.turnId);
      case "systemNotification":
        return new NoteView();
      default:
        return new OtherPartView();
    }
  }

  /** @param {Turn | ActiveTurn} turn */
  #showEnding(turn) {
    const state = "state" in turn ? turn.state : undefined;
    show(this.working, state === undefined && !this.context.isAsking());
    show(this.ending, state === "cancelled" || state === "error");
    attribute(this.ending, "data-state", state);
    const text = "error" in turn && turn.error ? turn.error.message : "It ended in an error.";
    const shown = state === "cancelled" ? "Stopped" : text;
    if (this.ending.textContent !== shown)
      fill(this.ending, state === "error" && icon(ICONS.warning), h("span", { dir: "auto" }, shown));
    attribute(this.element, "data-active", state === undefined);
  }

  /** The tool call in it that waits for approval. */
  asking() {
    const views = this.parts.views().filter((view) => view instanceof ToolCallPartView);
    return views.find(({ view }) => view.isAsking)?.view;
  }

  /** Access or open questions have changed. */
  refresh() {
    show(this.working, !this.context.isAsking());
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
    this.text = h("div", { class: "prose reasoning-text" });
    this.element = h(
      "details",
      { class: "reasoning", ontoggle: () => this.#draw() },
      h("summary", null, icon(ICONS.chevron), this.title),
      this.text,
    );
    this.source = "";
  }

  /** @param {Placed} placed */
  update({ part, isLast }) {
    if (part.kind !== "reasoning") return;
    this.source = part.content;
    setText(this.title, isLast ? "Thinking" : "Thought about it");
    this.#draw();
  }

  #draw() {
    if (this.element.open) renderMarkdown(this.text, this.source);
  }
}

class ToolCallPartView {
  /** @param {SessionContext} context @param {string} turnId */
  constructor(context, turnId) {
    this.view = new ToolCallView(context, turnId);
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

/** A note of the host; a more detailed outcome may replace it. */
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
    const text =
      part.kind === "contentRef"
        ? `${part.contentType ?? "Content"}: ${part.uri}`
        : "Something this page cannot show";
    setText(this.element, text);
  }
}

/** @param {ResponsePart} part @param {number} index */
function keyOf(part, index) {
  if (part.kind === "toolCall") return `call ${part.toolCall.toolCallId}`;
  return "id" in part ? `${part.kind} ${part.id}` : `${part.kind} ${index}`;
}

/** @param {readonly ResponsePart[]} parts */
export function lastNote(parts) {
  const note = parts.findLast((part) => part.kind === "systemNotification");
  return note?.kind === "systemNotification" ? plainOf(note.content) : undefined;
}
