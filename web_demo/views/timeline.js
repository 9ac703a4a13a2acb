// The turns of a session, latest at the bottom. Long histories are drawn from the end, and more of
// them as one scrolls up.

/** @import { ActiveTurn, SessionState, Turn } from "../wire/types.d.ts" */
/** @import { Room } from "./room.js" */
import { h, show } from "./dom.js";
import { KeyedViews } from "./keyed.js";
import { TurnView } from "../parts/turn.js";

const FIRST = 20;
const PIECE = 40;

export class Timeline {
  /** @param {Room} room */
  constructor(room) {
    this.room = room;
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
      (turn) => new TurnView(room, turn.id),
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
    // What one reads stays where it is.
    if (scroller) scroller.scrollTop += this.element.scrollHeight - before;
    // Still in view: it would not be told again.
    this.watcher.unobserve(this.earlier);
    this.watcher.observe(this.earlier);
  }

  /** The first tool call that waits for a yes or no. */
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
