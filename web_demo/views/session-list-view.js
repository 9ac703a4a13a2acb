// The live list of sessions: those that need input first, then running, failed and idle ones.

/** @import { Host } from "../client/host.js" */
/** @import { SessionSummary } from "../client/types.d.ts" */
/** @import { Viewer } from "./access.js" */
import { isArchived, isHidden, latestFirst } from "../client/session-list.js";
import { attribute, fill, h, icon, KeyedViews, oncePerFrame, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { emptyList } from "./new-session.js";
import { kindOf, SessionRow } from "./session-row.js";

/** @typedef {"all" | "input-needed" | "running" | "error" | "archived"} Filter */
/** @typedef {{ head: string, label: string, count: number }} Head */

const GROUPS = /** @type {const} */ ([
  ["input-needed", "Needs input"],
  ["left", "No longer waiting"],
  ["running", "Running"],
  ["error", "Failed"],
  ["idle", "Idle"],
  ["recording", "Recordings"],
]);
/** @type {readonly [Filter, string][]} */
const FILTERS = [
  ["all", "All"],
  ["input-needed", "Needs input"],
  ["running", "Running"],
  ["error", "Failed"],
  ["archived", "Archived"],
];
const MINUTE = 60_000;

export class SessionListView {
  filter = /** @type {Filter} */ ("all");
  /** @type {string | undefined} */
  shownEmpty = undefined;
  /** @type {string | undefined} */
  open = undefined;
  /** @type {string | undefined} */
  marked = undefined;
  search = h("input", {
    class: "field-input sessions-search",
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter sessions",
    autocomplete: "off",
    oninput: () => this.update(),
    onkeydown: (event) => this.#searchKey(event),
  });
  tabs = FILTERS.map(([id, label]) => {
    const count = h("span", { class: "count" });
    const about = { class: "filter", "aria-pressed": String(id === "all"), "data-filter": id };
    const element = h("button", { ...about, onclick: () => this.#pick(id) }, label, count);
    return { id, element, count };
  });
  list = h("div", {
    class: "session-list",
    role: "list",
    "aria-label": "Sessions",
    onkeydown: (event) => this.#listKey(event),
  });
  empty = h("div", { class: "empty" });
  /** The counts next to the filters, for screen readers. */
  summary = h("p", { class: "sessions-sum unseen", role: "status" });

  /** @param {Host} host @param {Viewer} viewer @param {() => void} create */
  constructor(host, viewer, create) {
    this.host = host;
    this.viewer = viewer;
    this.create = create;
    this.tools = h(
      "div",
      { class: "sessions-tools" },
      this.summary,
      h("div", { class: "search-row" }, icon(ICONS.search), this.search),
      h("div", { class: "filters", role: "group", "aria-label": "Show" }, ...this.tabs.map(({ element }) => element)),
    );
    this.element = h(
      "nav",
      { class: "sessions", "aria-label": "Sessions" },
      this.tools,
      this.list,
      this.empty,
    );
    this.rows = new KeyedViews(
      this.list,
      (/** @type {Head | SessionSummary} */ line) => ("head" in line ? line.head : line.resource),
      (line) => ("head" in line ? groupHead() : new SessionRow(host, viewer, line)),
    );
    this.updateSoon = oncePerFrame(() => this.update());
    host.on("sessions", () => this.updateSoon());
    host.on("status", () => this.updateSoon());
    viewer.on("change", () => this.#viewerChanged());
    setInterval(() => this.#times(), MINUTE);
    this.update();
  }

  #viewerChanged() {
    for (const view of this.rows.views()) if (view instanceof SessionRow) view.update(view.summary);
    this.updateSoon();
  }

  /** @param {string | undefined} session the one that is open */
  current(session) {
    this.open = session;
    this.#mark();
  }

  update() {
    const all = this.host.sessions;
    const shown = (all ?? []).filter((summary) => this.#isShown(summary));
    this.rows.update(this.#lines(shown));
    this.#counts(all ?? []);
    this.#showEmpty(all, shown.length);
    this.#mark();
  }

  /** @param {SessionSummary} summary */
  #isShown(summary) {
    const query = this.search.value.trim().toLowerCase();
    const fits =
      query === "" ||
      `${summary.title} ${summary.provider} ${summary.resource}`.toLowerCase().includes(query);
    return fits && isIn(summary, this.filter);
  }

  /** @param {readonly SessionSummary[]} shown @returns {(Head | SessionSummary)[]} */
  #lines(shown) {
    const sorted = latestFirst(shown);
    return GROUPS.flatMap(([activity, label]) => {
      const members = sorted.filter((summary) => kindOf(summary) === activity);
      if (members.length === 0) return [];
      return [{ head: `head ${activity}`, label, count: members.length }, ...members];
    });
  }

  /** @param {readonly SessionSummary[]} all */
  #counts(all) {
    for (const { id, element, count } of this.tabs) {
      const found = all.filter((summary) => isIn(summary, id)).length;
      setText(count, String(found));
      show(element, id === "all" || found > 0 || id === this.filter);
    }
    const waiting = all.filter((summary) => isIn(summary, "input-needed")).length;
    const running = all.filter((summary) => isIn(summary, "running")).length;
    const parts = [
      waiting > 0 && `${waiting} ${waiting === 1 ? "needs" : "need"} input`,
      running > 0 && `${running} running`,
    ];
    setText(this.summary, parts.filter(Boolean).join(", ") || (all.length > 0 ? "All quiet" : ""));
  }

  /** @param {readonly SessionSummary[] | undefined} all @param {number} shown */
  #showEmpty(all, shown) {
    show(this.empty, shown === 0);
    show(this.list, shown > 0);
    show(this.tools, all !== undefined && all.length > 0);
    const key = `${this.#emptyKind(all)} ${this.viewer.mayCreate}`;
    if (shown > 0 || key === this.shownEmpty) return;
    this.shownEmpty = key;
    if (key.startsWith("loading"))
      fill(this.empty, h("p", { class: "muted", "data-late": true }, "Loading…"));
    else if (key.startsWith("unreached"))
      fill(this.empty, h("p", { class: "muted" }, "Sessions appear here when the host can be reached."));
    else if (key.startsWith("none"))
      fill(this.empty, ...emptyList(this.viewer.mayCreate ? this.create : undefined));
    else
      fill(
        this.empty,
        h("p", { class: "muted" }, "No session matches."),
        h("button", { class: "quiet", onclick: () => this.#clear() }, "Show all"),
      );
  }

  /** @param {readonly SessionSummary[] | undefined} all */
  #emptyKind(all) {
    if (all !== undefined) return all.length === 0 ? "none" : "filtered";
    return ["offline", "closed"].includes(this.host.status.phase) ? "unreached" : "loading";
  }

  #mark() {
    if (this.marked !== this.open) this.rowOf(this.marked)?.mark(false);
    this.marked = this.open;
    this.rowOf(this.open)?.mark(true);
  }

  /** @param {string | undefined} session */
  rowOf(session) {
    const view = session === undefined ? undefined : this.rows.get(session);
    return view instanceof SessionRow ? view : undefined;
  }

  #times() {
    for (const view of this.rows.views()) if (view instanceof SessionRow) view.times();
  }

  // Input

  /** @param {Filter} filter */
  #pick(filter) {
    this.filter = filter;
    for (const { id, element } of this.tabs)
      attribute(element, "aria-pressed", String(id === filter));
    this.shownEmpty = undefined;
    this.update();
  }

  #clear() {
    this.search.value = "";
    this.#pick("all");
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      const [first] = this.#links();
      if (event.key === "Enter") first?.click();
      else first?.focus();
    } else if (event.key === "Escape") {
      this.search.value = "";
      this.update();
    }
  }

  /** @param {KeyboardEvent} event */
  #listKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.altKey) return;
    event.preventDefault();
    const links = this.#links();
    const current = document.activeElement?.closest(".session-row")?.querySelector("a");
    const at = links.findIndex((link) => link === current);
    const to = links[at + step];
    if (to) to.focus();
    else if (step < 0) this.search.focus();
  }

  #links() {
    return [...this.list.querySelectorAll("a")];
  }
}

function groupHead() {
  const label = h("span");
  const count = h("span", { class: "count" });
  const element = h("div", { class: "group-head", role: "listitem" }, h("h2", null, label), count);
  const update = (/** @type {Head} */ head) => {
    setText(label, head.label);
    setText(count, String(head.count));
  };
  return { element, update };
}

/** @param {SessionSummary} summary @param {Filter} filter */
function isIn(summary, filter) {
  if (filter === "archived") return isArchived(summary.status);
  return !isHidden(summary.status) && (filter === "all" || kindOf(summary) === filter);
}
