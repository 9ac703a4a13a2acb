// The frame of the page: sessions beside a session, or one of the two on a phone.

/** @import { Host } from "../wire/host.js" */
/** @import { SessionSummary } from "../wire/types.d.ts" */
/** @import { Attention } from "./attention.js" */
import { attribute, fill, h, icon, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { listenToKeys, showKeys } from "./keys.js";
import { NewSessionDialog } from "./new-session.js";
import { placeOf, waitingHash } from "./places.js";
import { SessionView } from "./session.js";
import { SessionsView } from "./sessions.js";
import { settingsMenu } from "./settings.js";
import { ConnectionStatus } from "./status.js";
import { counted } from "../text/words.js";

const MOST_GREETED = 5;
const NARROW = matchMedia("(max-width: 760px)");

/** @param {SessionSummary} summary */
function waitingItem(summary) {
  return h(
    "li",
    null,
    h(
      "a",
      { class: "welcome-item", href: waitingHash(summary.resource) },
      h("bdi", { class: "row-title" }, summary.title || "Untitled"),
      h("span", { class: "row-answer" }, "Answer"),
    ),
  );
}

/** @param {() => void} go */
function skipLink(go) {
  const words = "Skip to the session";
  return h("button", { type: "button", class: "skip-link", onclick: go }, words);
}

/**
 * @param {() => void} create
 * @param {HTMLElement} settings
 * @param {HTMLElement} sessions
 * @param {HTMLElement} status
 */
function sidebarOf(create, settings, sessions, status) {
  const about = { "aria-label": "New session", title: "New session (n)" };
  return h(
    "div",
    { class: "sidebar", "aria-label": "Overview" },
    h(
      "div",
      { class: "sidebar-head" },
      h(
        "h1",
        { class: "brand" },
        h("img", { src: "icon.svg", alt: "", width: 20, height: 20 }),
        "session-server",
      ),
      h(
        "button",
        { type: "button", class: "icon-button", ...about, onclick: create },
        icon(ICONS.plus),
      ),
      settings,
    ),
    sessions,
    h("div", { class: "sidebar-foot" }, status),
  );
}

export class Shell {
  /** @type {SessionView | undefined} */
  view = undefined;
  /** @type {string | undefined} */
  greeted = undefined;
  welcome = h("div", { class: "welcome empty" });

  /**
   * @param {Host} host
   * @param {Attention} attention
   */
  constructor(host, attention) {
    this.host = host;
    this.attention = attention;
    const create = () => new NewSessionDialog(host).open();
    const status = new ConnectionStatus(host);
    const settings = settingsMenu(host, attention);
    this.sessions = new SessionsView(host, create);
    this.sidebar = sidebarOf(create, settings.element, this.sessions.element, status.element);
    this.main = h("main", { id: "main", tabindex: -1 }, this.welcome);
    this.element = h(
      "div",
      { class: "shell" },
      skipLink(() => this.main.focus()),
      status.bar,
      status.chip,
      h("div", { class: "panes" }, this.sidebar, this.main),
    );
    const search = () => this.#search();
    listenToKeys({ "/": search, n: create, w: () => this.#nextWaiting(), "?": showKeys });
    host.on("sessions", () => this.#greet());
    addEventListener("hashchange", () => this.go());
    NARROW.addEventListener("change", () => this.#landmarks());
    this.#greet();
    this.go();
  }

  /** Shows what the address names. */
  go() {
    const place = placeOf(location.hash);
    attribute(this.element, "data-view", place.session ? "session" : "list");
    this.#landmarks();
    this.sessions.current(place.session);
    if (place.session !== this.view?.session.uri) this.#open(place.session);
    this.view?.goTo(place);
  }

  /** On a phone the list is all there is, so it is the main thing. */
  #landmarks() {
    const isAlone = NARROW.matches && this.element.dataset["view"] === "list";
    attribute(this.sidebar, "role", isAlone ? "main" : "complementary");
  }

  /** @param {string | undefined} uri */
  #open(uri) {
    this.view?.remove();
    this.view?.element.remove();
    this.view = uri === undefined ? undefined : new SessionView(this.host, uri);
    show(this.welcome, this.view === undefined);
    if (this.view) {
      this.main.append(this.view.element);
      this.view.session.on("change", () => this.#named());
    }
    this.#named();
  }

  #named() {
    this.attention.at(this.view?.session.state?.summary.title ?? "");
  }

  /** What a wide page shows beside the list before anything is chosen. */
  #greet() {
    const waiting = this.attention.waiting();
    const key = waiting.map((summary) => summary.resource).join(" ");
    if (key === this.greeted) return;
    this.greeted = key;
    fill(
      this.welcome,
      h(
        "h2",
        null,
        waiting.length > 0
          ? `${counted(waiting.length, "session")} ${waiting.length === 1 ? "needs" : "need"} input`
          : "Nothing needs you",
      ),
      waiting.length > 0
        ? h("ul", { class: "welcome-list" }, ...waiting.slice(0, MOST_GREETED).map(waitingItem))
        : h("p", null, "Questions appear here as soon as an agent or a tool asks."),
    );
  }

  #search() {
    if (this.view && NARROW.matches) location.hash = "#/";
    this.sessions.search.focus();
  }

  #nextWaiting() {
    const waiting = this.attention.waiting();
    const at = waiting.findIndex((summary) => summary.resource === this.view?.session.uri);
    const next = waiting[(at + 1) % waiting.length];
    if (!next) return;
    location.hash = waitingHash(next.resource);
    this.view?.goTo({ session: next.resource, asks: true });
  }
}
