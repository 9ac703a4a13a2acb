// The turns of a session, latest at the bottom. Long histories are drawn from the end, and more
// while scrolling up.

/** @import { ActiveTurn, ResponsePart, SessionState, Turn } from "../../client/types.d.ts" */
/** @import { ItemView } from "../dom.js" */
/** @import { SessionContext } from "./session-context.js" */
import { renderMarkdown } from "../../text/markdown.js";
import { plainOf, textBlock } from "./content.js";
import { attribute, fill, h, icon, KeyedViews, setText, show } from "../dom.js";
import { ICONS } from "../icons.js";
import { ToolCallView } from "./tool-call.js";

const FIRST = 20;
const PIECE = 40;

export class Timeline {
  drawn = FIRST;
  earlier = h("button", { class: "quiet earlier-turns", onclick: () => this.more() }, "Show earlier turns");
  list = h("div", { class: "turns stack" });
  element = h(
    "div",
    { class: "timeline", role: "log", "aria-label": "Turns", "aria-live": "off" },
    this.earlier,
    this.list,
  );

  /** @param {SessionContext} context */
  constructor(context) {
    this.turns = new KeyedViews(
      this.list,
      (/** @type {Turn | ActiveTurn} */ turn) => turn.id,
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
      if (view.element.dataset["active"] !== undefined) view.refresh();
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
    return this.turns.views().flatMap((view) => view.calls()).find((call) => call.isAsking);
  }

  remove() {
    this.watcher.disconnect();
  }
}

// One turn: the message, and the response part by part.

/** @typedef {{ key: string, part: ResponsePart, isLast: boolean }} Placed */

class TurnView {
  message = h("div", { class: "message" });
  body = h("div", { class: "response stack" });
  ending = h("p", { class: "turn-ending faint", hidden: true });
  working = h(
    "p",
    { class: "working row faint", hidden: true },
    h("span", { class: "working-dots", "aria-hidden": "true" }),
    "Working",
  );
  element = h("article", { class: "turn stack" }, this.message, this.body, this.working, this.ending);
  parts = new KeyedViews(
    this.body,
    (/** @type {Placed} */ placed) => placed.key,
    ({ part }) => this.#partView(part),
  );
  /** @type {Placed[]} */
  placed = [];

  /** @param {SessionContext} context @param {string} turnId */
  constructor(context, turnId) {
    this.context = context;
    this.turnId = turnId;
    attribute(this.element, "data-turn", turnId);
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
        h("bdi", { class: "attachment hint" }, attachment.label),
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
    const before = this.placed[index];
    if (before?.part === part && before.isLast === isLast) return before;
    const placed = { key: keyOf(part, index), part, isLast };
    this.placed[index] = placed;
    return placed;
  }

  /** @param {ResponsePart} first @returns {ItemView<Placed>} */
  #partView(first) {
    switch (first.kind) {
      case "markdown": {
        const element = h("div", { class: "prose" });
        const update = (/** @type {Placed} */ { part }) =>
          part.kind === "markdown" && renderMarkdown(element, part.content);
        return { element, update };
      }
      case "reasoning":
        return new ReasoningPartView();
      case "toolCall":
        return new ToolCallView(this.context, this.turnId);
      case "systemNotification": {
        const note = h("div", { class: "note hint" });
        // A more detailed outcome may be placed after the note, and replaces it.
        const element = h("div", { class: "note-place" }, note);
        const update = (/** @type {Placed} */ { part }) =>
          part.kind === "systemNotification" && fill(note, textBlock(part.content));
        return { element, update };
      }
      default: {
        const element = h("p", { class: "note hint", dir: "auto" });
        return { element, update: ({ part }) => setText(element, otherText(part)) };
      }
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

  calls() {
    return this.parts.views().filter((view) => view instanceof ToolCallView);
  }

  /** Access or open questions have changed. */
  refresh() {
    show(this.working, !this.context.isAsking());
    for (const call of this.calls()) call.refresh();
  }
}

class ReasoningPartView {
  title = h("span", null, "Thinking");
  text = h("div", { class: "prose reasoning-text hint" });
  element = h(
    "details",
    { class: "reasoning", ontoggle: () => this.#draw() },
    h("summary", null, icon(ICONS.chevron), this.title),
    this.text,
  );
  source = "";

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

/** @param {ResponsePart} part */
function otherText(part) {
  if (part.kind !== "contentRef") return "Something this page cannot show";
  return `${part.contentType ?? "Content"}: ${part.uri}`;
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
