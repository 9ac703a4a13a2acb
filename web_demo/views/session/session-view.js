// One session: its turns, its open questions as forms, and the composer.

/** @import { Host } from "../../client/host.js" */
/** @import { Change } from "../../client/mirror.js" */
/** @import { Closing } from "../../client/session.js" */
/** @import { Role, SessionState } from "../../client/types.d.ts" */
/** @import { Group } from "../../form/request-groups.js" */
/** @import { Viewer } from "../access.js" */
/** @import { Route } from "../routes.js" */
import { NO_AGENT } from "../../client/session-list.js";
import { outcomeOf } from "../../form/closed-request.js";
import { RequestForm } from "../../form/request-form.js";
import { groupsOf, keyOf, shownRequests } from "../../form/request-groups.js";
import { counted, subjectOf, timeOf } from "../../text/format.js";
import { WHY_ID } from "../access.js";
import { Composer } from "./composer.js";
import { plainOf } from "./content.js";
import { fill, h, icon, KeyedViews, oncePerFrame, show, SMALL } from "../dom.js";
import { ICONS } from "../icons.js";
import { Servers } from "./mcp-servers.js";
import { NamePrompt } from "./people.js";
import { SessionContext } from "./session-context.js";
import { SessionHeader } from "./session-header.js";
import { lastNote, Timeline } from "./timeline.js";
import { announce, toast } from "../toasts.js";

const NEAR = 120;
/** @type {Readonly<Record<string, readonly [string, string]>>} */
const GONE = {
  removed: ["This session was removed", "Someone deleted it while you were here."],
  unknown: [
    "There is no such session here",
    "It does not exist, it was removed, or it was not shared with you.",
  ],
};

export class SessionView {
  outcomes = h("div", { class: "outcomes stack" });
  forms = h("div", { class: "forms stack" });
  banner = h("p", { class: "banner row hint", role: "note", id: WHY_ID, hidden: true });
  empty = h("div", { class: "empty" });
  jump = h("button", { class: "jump", hidden: true, onclick: () => this.#toEnd() }, "New below");
  isFollowing = true;
  /** More than the forms is to be drawn. */
  isStale = false;
  size = 0;
  asked = 0;
  /** @type {string | undefined} */
  shownEmpty = undefined;
  shownWhy = "";
  /** @type {HTMLElement | undefined} */
  whyToast = undefined;
  /** @type {Role | undefined} */
  shownRole = undefined;
  /** @type {Route | undefined} */
  route = undefined;
  /** @type {Set<string>} */
  known = new Set();

  /** @param {Host} host @param {Viewer} viewer @param {string} uri */
  constructor(host, viewer, uri) {
    this.session = host.open(uri);
    this.context = new SessionContext(host, viewer, this.session, () => this.drawSoon());
    this.header = new SessionHeader(this.context, () => this.composer.stopTurn());
    this.timeline = new Timeline(this.context);
    this.composer = new Composer(this.context);
    this.prompt = new NamePrompt(this.context);
    this.servers = new Servers(this.context);
    this.scroller = h(
      "div",
      { class: "scroller", onscroll: () => this.#scrolled() },
      h(
        "div",
        { class: "column" },
        this.empty,
        this.timeline.element,
        this.outcomes,
        this.forms,
        this.composer.element,
      ),
    );
    this.element = h(
      "section",
      { class: "session", "aria-label": "Session" },
      this.header.element,
      this.banner,
      this.servers.element,
      this.prompt.element,
      this.scroller,
      this.jump,
    );
    this.groups = new KeyedViews(
      this.forms,
      (/** @type {Group} */ group) => group.key,
      (group) => new RequestForm(this.context, group),
    );
    this.isLive = host.isLive;
    this.drawSoon = oncePerFrame(() => (this.isStale ? this.render() : this.#drawForms()));
    this.offs = this.#listen();
    this.render();
  }

  #listen() {
    const { session } = this;
    const renderSoon = () => this.renderSoon();
    document.addEventListener("visibilitychange", renderSoon);
    return [
      () => document.removeEventListener("visibilitychange", renderSoon),
      session.on("change", (change) => this.#changed(change)),
      session.on("presence", () => this.#presenceChanged()),
      session.on("phase", renderSoon),
      session.on("closed", (closing) => this.#closed(closing)),
      session.on("field", () => this.drawSoon()),
      this.context.host.on("root", renderSoon),
      this.context.host.on("status", () => this.#statusChanged()),
      this.context.viewer.on("change", renderSoon),
    ];
  }

  // Drawing

  /** Everything; `drawSoon` draws only the forms, unless everything is due. */
  renderSoon() {
    this.isStale = true;
    this.drawSoon();
  }

  render() {
    this.isStale = false;
    const { state, phase } = this.session;
    this.header.update();
    const isThere = state !== undefined && phase !== "gone";
    for (const part of [this.timeline.element, this.composer.element, this.outcomes, this.forms])
      show(part, isThere);
    this.#showEmpty(state);
    this.#showBanner();
    if (!isThere) return;
    this.servers.update(state.customizations);
    this.timeline.update(state);
    this.#placeCards();
    const requests = shownRequests(this.session);
    this.#updateForms(groupsOf(requests));
    this.forms.toggleAttribute("data-open", requests.length > 0);
    this.composer.update();
    this.prompt.update();
    this.#announceNew();
    this.#follow();
    this.#focusRoute();
    const isSeen = document.visibilityState === "visible" && !this.context.isLeftUnread;
    if (isSeen && this.context.access.mayAnswer) this.session.markRead();
  }

  /**
   * Answers of open questions change with every draft, and only the forms show them.
   * @param {Change<SessionState>} change
   */
  #changed({ action }) {
    if (action?.type === "session/inputAnswerChanged") this.drawSoon();
    else this.renderSoon();
  }

  #drawForms() {
    for (const group of groupsOf(shownRequests(this.session))) this.groups.get(group.key)?.update(group);
  }

  /** Only whether there is a connection is shown here. */
  #statusChanged() {
    const { isLive } = this.context.host;
    if (isLive === this.isLive) return;
    this.isLive = isLive;
    this.renderSoon();
  }

  /** @param {SessionState | undefined} state */
  #showEmpty(state) {
    const content = this.#emptyText(state);
    show(this.empty, content !== undefined);
    const key = content?.join("\n");
    if (key === this.shownEmpty) return;
    this.shownEmpty = key;
    this.empty.toggleAttribute("data-late", this.session.phase === "loading");
    const [title, text] = content ?? ["", ""];
    fill(
      this.empty,
      h("h2", null, title),
      h("p", { dir: "auto" }, text),
      this.session.phase === "gone" && h("a", { class: "button", href: "#/" }, "All sessions"),
    );
  }

  /** @param {SessionState | undefined} state */
  #emptyText(state) {
    const { phase, error } = this.session;
    if (phase === "gone") return GONE[error?.code === "gone" ? "removed" : "unknown"];
    if (state === undefined)
      return ["", this.context.host.isLive ? "Opening…" : "Waiting for the host…"];
    if (state.lifecycle === "creationFailed")
      return ["This session could not be created", state.creationError?.message ?? ""];
    const isBare = state.turns.length === 0 && !state.activeTurn && !state.inputRequests?.length;
    if (!isBare) return undefined;
    const isDirected = this.context.access.mayDirect && state.summary.provider !== NO_AGENT;
    return [
      "Nothing here yet",
      isDirected
        ? "Send a message below to start the first turn."
        : "When something is asked, it appears here.",
    ];
  }

  /** The page's title while this is shown. */
  get name() {
    if (this.session.phase === "gone") return "Not found";
    return this.session.state?.summary.title ?? "";
  }

  /**
   * The focus moves from a form that closed to its outcome.
   * @param {readonly Group[]} groups
   */
  #updateForms(groups) {
    const left = this.groups.views().find((form) => form.hasFocus)?.group.key;
    this.groups.update(groups);
    if (left === undefined || groups.some(({ key }) => key === left)) return;
    this.#cards.findLast((card) => card.dataset["group"] === left)?.focus({ preventScroll: true });
  }

  #showBanner() {
    const { role, why, isRecording } = this.context.access;
    show(this.banner, why !== "" && this.session.phase !== "gone");
    const until = this.context.viewer.known?.expiresAt;
    const text = until ? `${why} Your link works until ${timeOf(until)}.` : why;
    if (text === this.shownWhy) return;
    this.shownWhy = text;
    const drawing = role === "answerer" ? ICONS.question : ICONS.eye;
    fill(this.banner, icon(isRecording ? ICONS.play : drawing), h("span", null, text));
    this.whyToast?.remove();
    this.whyToast = text && SMALL.matches ? toast(text) : undefined;
  }

  #presenceChanged() {
    this.header.people.update();
    const { role } = this.context.access;
    if (role !== this.shownRole) {
      this.shownRole = role;
      this.renderSoon();
    }
    this.drawSoon();
    this.prompt.update();
  }

  // Announcements

  /** New questions are announced to screen readers; the focus does not move. */
  #announceNew() {
    const requests = this.context.requests();
    for (const request of requests) {
      if (this.known.has(request.id)) continue;
      this.known.add(request.id);
      const count = request.questions?.length ?? 0;
      const size = count > 1 ? `, ${counted(count, "question")}` : "";
      announce(`New question: ${subjectOf(request)}${size}`);
    }
  }

  /** @param {Closing} closing */
  #closed(closing) {
    const { activeTurn, turns } = this.session.state ?? {};
    const note = lastNote((activeTurn ?? turns?.at(-1))?.responseParts ?? []);
    const card = outcomeOf(this.context, closing, note, () => {
      card.remove();
      this.renderSoon();
    });
    card.dataset["group"] = keyOf(closing.request);
    card.dataset["note"] = note ?? "";
    this.#removeOldCards(keyOf(closing.request));
    this.outcomes.append(card);
    announce(card.querySelector(".outcome-text")?.textContent ?? "");
    this.renderSoon();
  }

  /** @returns {HTMLElement[]} the outcomes that are shown */
  get #cards() {
    return [...this.scroller.querySelectorAll("section.outcome")].filter(
      (card) => card instanceof HTMLElement,
    );
  }

  /** An outcome replaces the note with the same text in the turn, so that what follows is below it. */
  #placeCards() {
    const notes = [...this.timeline.element.querySelectorAll(".turn:last-child .note")];
    for (const card of this.#cards.filter(({ parentElement }) => parentElement === this.outcomes)) {
      const note = notes.findLast(
        (each) => each.textContent === card.dataset["note"] && !each.nextElementSibling,
      );
      note?.after(card);
    }
  }

  /** Outcomes are part of the turn anyway; only those with unsent answers stay. */
  /** @param {string} group */
  #removeOldCards(group) {
    const others = this.#cards.filter((card) => card.dataset["group"] !== group);
    for (const card of others) if (!card.querySelector(".unsent")) card.remove();
  }

  // Scrolling and focus

  #scrolled() {
    this.isFollowing = !this.#hasBelow;
    if (this.isFollowing) show(this.jump, false);
  }

  /** Whether there is more below the visible part. */
  get #hasBelow() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight >= NEAR;
  }

  /** At the end it keeps following; otherwise a button says that there is more. */
  #follow() {
    const { size, asked } = this.#extent();
    const hasMore = size > this.size || asked > this.asked;
    const isFirst = this.size === 0;
    this.size = size;
    this.asked = asked;
    if (!this.jump.hidden && !this.#hasBelow) show(this.jump, false);
    if (!hasMore || this.forms.contains(document.activeElement)) return;
    if (this.isFollowing || isFirst) this.#toEnd();
    else show(this.jump, this.#hasBelow);
  }

  /** How much text and how many questions there are. */
  #extent() {
    const { state } = this.session;
    const parts = state?.activeTurn?.responseParts ?? [];
    const text = parts.reduce(
      (sum, part) => sum + ("content" in part ? plainOf(part.content).length : 1),
      0,
    );
    return { size: (state?.turns.length ?? 0) * 1_000_000 + text + 1, asked: this.known.size };
  }

  #toEnd() {
    const form = this.forms.querySelector(".request");
    if (form) form.scrollIntoView({ block: "start" });
    else this.scroller.scrollTop = this.scroller.scrollHeight;
    show(this.jump, false);
  }

  /** @param {Route} route */
  goTo(route) {
    this.route = route.asks ? route : undefined;
    this.#focusRoute();
  }

  /** Focuses what the address names, as soon as it exists. */
  #focusRoute() {
    const { route } = this;
    if (!route || !this.session.state) return;
    const forms = this.groups.views();
    const named = forms.find((form) =>
      form.group.requests.some((request) => request.id === route.request),
    );
    const form = named ?? (route.request === undefined ? forms[0] : undefined);
    const call = forms.length === 0 ? this.timeline.asking() : undefined;
    this.route = undefined;
    this.isFollowing = false;
    if (form) form.focusQuestion(route.question);
    else if (call) call.focus();
    else if (route.request !== undefined) toast("That question is no longer open.");
  }

  remove() {
    for (const off of this.offs) off();
    for (const form of this.groups.views()) form.remove();
    this.composer.remove();
    this.timeline.remove();
    this.header.remove();
    this.session.close();
  }
}
