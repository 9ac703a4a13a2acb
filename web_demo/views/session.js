// A session: its turns, its open questions as forms, and the line to say something in.

/** @import { Role, SessionState } from "../wire/types.d.ts" */
/** @import { Host } from "../wire/host.js" */
/** @import { Closing } from "../wire/session.js" */
/** @import { Group } from "../form/groups.js" */
/** @import { Place } from "./places.js" */
/** @import { Self } from "./self.js" */
import { WHY_ID } from "./access.js";
import { announce } from "./announcer.js";
import { Composer } from "./composer.js";
import { SMALL, fill, h, icon, oncePerFrame, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { KeyedViews } from "./keyed.js";
import { NamePrompt } from "./name-prompt.js";
import { Room } from "./room.js";
import { Servers } from "./servers.js";
import { SessionHeader } from "./session-header.js";
import { Timeline } from "./timeline.js";
import { toast } from "./toast.js";
import { groupsOf, keyOf, shownRequests } from "../form/groups.js";
import { RequestForm } from "../form/request-form.js";
import { outcomeOf } from "../form/outcome.js";
import { plainOf } from "../parts/text.js";
import { lastNote } from "../parts/turn.js";
import { counted, subjectOf, timeOf } from "../text/words.js";

const NEAR = 120;
const PASSIVE = "people";
/** @type {Readonly<Record<string, readonly [string, string]>>} */
const GONE = {
  removed: ["This session was removed", "Someone deleted it while you were here."],
  unknown: [
    "There is no such session here",
    "It does not exist, it was removed, or it was not shared with you.",
  ],
};

export class SessionView {
  outcomes = h("div", { class: "outcomes" });
  forms = h("div", { class: "forms" });
  banner = h("p", { class: "banner", role: "note", id: WHY_ID, hidden: true });
  empty = h("div", { class: "empty" });
  jump = h(
    "button",
    { type: "button", class: "jump", hidden: true, onclick: () => this.#toEnd() },
    "New below",
  );
  isFollowing = true;
  size = 0;
  asked = 0;
  /** @type {string | undefined} */
  shownEmpty = undefined;
  shownWhy = "";
  /** @type {HTMLElement | undefined} */
  whyToast = undefined;
  /** @type {Role | undefined} */
  shownRole = undefined;
  /** @type {Place | undefined} */
  place = undefined;
  /** @type {Set<string>} */
  known = new Set();

  /**
   * @param {Host} host
   * @param {Self} self
   * @param {string} uri
   */
  constructor(host, self, uri) {
    this.session = host.open(uri);
    this.room = new Room(host, self, this.session, () => this.marksSoon());
    this.header = new SessionHeader(this.room, () => this.composer.stopTurn());
    this.timeline = new Timeline(this.room);
    this.composer = new Composer(this.room);
    this.prompt = new NamePrompt(this.room);
    this.servers = new Servers(this.room);
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
    /** @type {KeyedViews<Group>} */
    this.groups = new KeyedViews(
      this.forms,
      (group) => group.key,
      (group) => new RequestForm(this.room, group),
    );
    this.renderSoon = oncePerFrame(() => this.render());
    this.marksSoon = oncePerFrame(() => this.#marks());
    this.offs = this.#listen();
    this.render();
  }

  #listen() {
    const { session } = this;
    const seen = () => this.renderSoon();
    document.addEventListener("visibilitychange", seen);
    return [
      () => document.removeEventListener("visibilitychange", seen),
      session.on("change", () => this.renderSoon()),
      session.on("presence", () => this.#presenceChanged()),
      session.on("phase", () => this.renderSoon()),
      session.on("closed", (/** @type {Closing} */ closing) => this.#closed(closing)),
      session.on("field", () => this.marksSoon()),
      session.on("completions", () => this.renderSoon()),
      this.room.host.on("root", () => this.renderSoon()),
      this.room.host.on("status", () => this.renderSoon()),
      this.room.self.on("change", () => this.renderSoon()),
    ];
  }

  // Drawing

  render() {
    const { state, phase } = this.session;
    this.header.update();
    const isThere = state !== undefined && phase !== "gone";
    for (const part of [this.timeline, this.composer]) show(part.element, isThere);
    for (const part of [this.outcomes, this.forms]) show(part, isThere);
    this.#showEmpty(state);
    this.#showBanner();
    if (!state || phase === "gone") return;
    this.servers.update(state.customizations);
    this.timeline.update(state);
    this.#placeCards();
    const requests = shownRequests(this.session);
    this.#updateForms(groupsOf(requests));
    this.forms.toggleAttribute("data-open", requests.length > 0);
    this.composer.update();
    this.prompt.update();
    this.#news();
    this.#follow();
    this.#arrive();
    if (document.visibilityState === "visible") this.#markRead();
  }

  /** @param {SessionState | undefined} state */
  #showEmpty(state) {
    const words = this.#emptyWords(state);
    show(this.empty, words !== undefined);
    const key = words?.join("\n");
    if (key === this.shownEmpty) return;
    this.shownEmpty = key;
    this.empty.toggleAttribute("data-late", this.session.phase === "loading");
    const [title, text] = words ?? ["", ""];
    fill(
      this.empty,
      h("h2", null, title),
      h("p", { dir: "auto" }, text),
      this.session.phase === "gone" && h("a", { class: "button", href: "#/" }, "All sessions"),
    );
  }

  /** @param {SessionState | undefined} state */
  #emptyWords(state) {
    const { phase, error } = this.session;
    if (phase === "gone") return GONE[error?.code === "gone" ? "removed" : "unknown"];
    if (state === undefined) return ["", this.#isConnected ? "Opening…" : "Waiting for the host…"];
    if (state.lifecycle === "creationFailed")
      return ["This session could not be created", state.creationError?.message ?? ""];
    const isBare = state.turns.length === 0 && !state.activeTurn && !state.inputRequests?.length;
    if (!isBare) return undefined;
    const isDirected = this.room.access.mayDirect && state.summary.provider !== PASSIVE;
    return [
      "Nothing here yet",
      isDirected
        ? "Say something below to start the first turn."
        : "When something is asked, it appears here.",
    ];
  }

  get #isConnected() {
    return ["live", "syncing"].includes(this.room.host.status.phase);
  }

  /** What the page is called while it shows this. */
  get name() {
    if (this.session.phase === "gone") return "Not found";
    return this.session.state?.summary.title ?? "";
  }

  /**
   * Whoever was in a form that is gone is at what became of it.
   * @param {readonly Group[]} groups
   */
  #updateForms(groups) {
    const forms = /** @type {RequestForm[]} */ (this.groups.views());
    const left = forms.find((form) => form.hasFocus)?.group.key;
    this.groups.update(groups);
    if (left === undefined || groups.some(({ key }) => key === left)) return;
    this.#cards.findLast((card) => card.dataset["group"] === left)?.focus({ preventScroll: true });
  }

  #showBanner() {
    const { role, why, isRecording } = this.room.access;
    show(this.banner, why !== "" && this.session.phase !== "gone");
    const until = this.room.self.known?.expiresAt;
    const words = until ? `${why} Your link works until ${timeOf(until)}.` : why;
    if (words === this.shownWhy) return;
    this.shownWhy = words;
    const drawing = role === "answerer" ? ICONS.question : ICONS.eye;
    fill(this.banner, icon(isRecording ? ICONS.play : drawing), h("span", null, words));
    this.whyToast?.remove();
    this.whyToast = words && SMALL.matches ? toast(words) : undefined;
  }

  #presenceChanged() {
    this.header.people.update();
    const { role } = this.room.access;
    if (role !== this.shownRole) {
      this.shownRole = role;
      this.renderSoon();
    }
    this.#refreshForms();
    this.prompt.update();
  }

  #refreshForms() {
    for (const view of this.groups.views()) if (view instanceof RequestForm) view.refresh();
  }

  #marks() {
    for (const view of this.groups.views()) if (view instanceof RequestForm) view.marks();
  }

  // News

  /** New questions are told to those who do not see them appear; nothing takes the focus. */
  #news() {
    const requests = this.room.requests();
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
    const card = outcomeOf(this.room, closing, note, () => {
      card.remove();
      this.renderSoon();
    });
    card.dataset["group"] = keyOf(closing.request);
    card.dataset["note"] = note ?? "";
    this.#tidy(keyOf(closing.request));
    this.outcomes.append(card);
    announce(card.querySelector(".outcome-words")?.textContent ?? "");
    this.renderSoon();
  }

  /** @returns {HTMLElement[]} the questions that closed while somebody looked, as long as they stand */
  get #cards() {
    return [...this.scroller.querySelectorAll("section.outcome")].filter(
      (card) => card instanceof HTMLElement,
    );
  }

  /** A card stands where the turn tells the same, so that what came of the answers is below it. */
  #placeCards() {
    const notes = [...this.timeline.element.querySelectorAll(".turn:last-child .note")];
    for (const card of this.#cards.filter(({ parentElement }) => parentElement === this.outcomes)) {
      const note = notes.findLast(
        (each) => each.textContent === card.dataset["note"] && !each.nextElementSibling,
      );
      note?.after(card);
    }
  }

  /** What is over is in the turn as well; only what was kept for somebody stays. */
  /** @param {string} group */
  #tidy(group) {
    const others = this.#cards.filter((card) => card.dataset["group"] !== group);
    for (const card of others) if (!card.querySelector(".unsent")) card.remove();
  }

  #markRead() {
    if (this.room.access.mayAnswer && !this.room.isLeftUnread) this.session.markRead();
  }

  // Where one is

  #scrolled() {
    this.isFollowing = !this.#hasBelow;
    if (this.isFollowing) show(this.jump, false);
  }

  /** Whether there is more than a little under what one sees. */
  get #hasBelow() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight >= NEAR;
  }

  /** Whoever is at the end stays there; whoever reads above is told that there is more. */
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

  /** How much has been said and asked. */
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

  /** @param {Place} place */
  goTo(place) {
    this.place = place.asks ? place : undefined;
    this.#arrive();
  }

  /** Once what the address names is there, it has the focus. */
  #arrive() {
    const { place } = this;
    if (!place || !this.session.state) return;
    const forms = /** @type {RequestForm[]} */ (this.groups.views());
    const named = forms.find((form) =>
      form.group.requests.some((request) => request.id === place.request),
    );
    const form = named ?? (place.request === undefined ? forms[0] : undefined);
    const call = forms.length === 0 ? this.timeline.asking() : undefined;
    this.place = undefined;
    this.isFollowing = false;
    if (form) form.focusQuestion(place.question);
    else if (call) call.focus();
    else if (place.request !== undefined) toast("That question is no longer open.");
  }

  remove() {
    for (const off of this.offs) off();
    for (const view of this.groups.views()) view.remove?.();
    this.composer.remove();
    this.timeline.remove();
    this.header.remove();
    this.session.close();
  }
}
