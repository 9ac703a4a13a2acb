// The frame of the page: sessions beside a session, or one of the two on a phone.

/** @import { Host } from "../wire/host.js" */
/** @import { Listed } from "../wire/sessions.js" */
/** @import { SessionSummary } from "../wire/types.d.ts" */
/** @import { Attention } from "./attention.js" */
import { LinkBar } from "./access.js";
import { SMALL, attribute, fill, h, icon, show } from "./dom.js";
import { Gate } from "./gate.js";
import { ICONS } from "./icons.js";
import { listenToKeys, showKeys } from "./keys.js";
import { NewSessionDialog } from "./new-session.js";
import { goTo, placeOf, waitingHash } from "./places.js";
import { Self } from "./self.js";
import { SessionView } from "./session.js";
import { SessionsView } from "./sessions.js";
import { settingsMenu } from "./settings.js";
import { ConnectionStatus } from "./status.js";
import { counted } from "../text/words.js";

const MOST_GREETED = 5;

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

/**
 * @param {readonly SessionSummary[]} waiting
 * @param {number} rest
 */
function needed(waiting, rest) {
  const verb = waiting.length === 1 ? "needs" : "need";
  return [
    h("h2", null, `${counted(waiting.length, "session")} ${verb} input`),
    h("ul", { class: "welcome-list" }, ...waiting.slice(0, MOST_GREETED).map(waitingItem)),
    rest > 0 && h("p", null, `and ${rest} more in the list`),
  ];
}

function nothingNeeded() {
  return [
    h("img", { class: "welcome-mark", src: "icon.svg", alt: "", width: 40, height: 40 }),
    h("h2", null, "Nothing needs you"),
    h("p", null, "Questions appear here as soon as an agent or a tool asks."),
  ];
}

/** @param {() => void} go */
function skipLink(go) {
  const words = "Skip to the session";
  return h("button", { type: "button", class: "skip-link", onclick: go }, words);
}

/** @param {() => void} create */
function createButton(create) {
  const about = { "aria-label": "New session", title: "New session (n)", hidden: true };
  return h(
    "button",
    { type: "button", class: "icon-button", ...about, onclick: create },
    icon(ICONS.plus),
  );
}

/**
 * @param {HTMLElement} create
 * @param {HTMLElement} settings
 * @param {HTMLElement} sessions
 * @param {HTMLElement} status
 */
function sidebarOf(create, settings, sessions, status) {
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
      create,
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
    this.self = new Self(host);
    const create = () => this.#create();
    this.creating = createButton(create);
    const status = new ConnectionStatus(host);
    const settings = settingsMenu(host, attention);
    this.sessions = new SessionsView(host, this.self, create);
    this.sidebar = sidebarOf(
      this.creating,
      settings.element,
      this.sessions.element,
      status.element,
    );
    this.main = h("main", { id: "main", tabindex: -1 }, this.welcome);
    this.panes = h("div", { class: "panes" }, this.sidebar, this.main);
    this.skip = skipLink(() => this.main.focus());
    this.gate = new Gate(host, (isClosed) => this.#admit(!isClosed));
    this.element = h(
      "div",
      { class: "shell" },
      this.skip,
      status.bar,
      new LinkBar(host).element,
      status.chip,
      this.panes,
      this.gate.element,
    );
    this.#listen(create);
    show(this.creating, this.self.mayCreate);
    this.#greet();
    this.go();
  }

  /** @param {() => void} create */
  #listen(create) {
    const search = () => this.#search();
    listenToKeys({ "/": search, n: create, w: () => this.#nextWaiting(), "?": showKeys });
    this.host.on("sessions", () => this.#greet());
    this.host.on("summary", (listed) => this.#appeared(listed));
    this.self.on("change", () => show(this.creating, this.self.mayCreate));
    addEventListener("hashchange", () => this.go());
    SMALL.addEventListener("change", () => this.#landmarks());
  }

  /** @param {boolean} isIn whoever is not let in sees why, and nothing else */
  #admit(isIn) {
    show(this.panes, isIn);
    show(this.skip, isIn);
    attribute(this.element, "data-closed", !isIn);
    if (isIn) this.attention.update();
    else for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  }

  #create() {
    if (this.self.mayCreate && !this.gate.isClosed) new NewSessionDialog(this.host).open();
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
    const isAlone = SMALL.matches && this.element.dataset["view"] === "list";
    attribute(this.sidebar, "role", isAlone ? "main" : "complementary");
  }

  /** @param {string | undefined} uri */
  #open(uri) {
    this.view?.remove();
    this.view?.element.remove();
    this.view = uri === undefined ? undefined : new SessionView(this.host, this.self, uri);
    show(this.welcome, this.view === undefined);
    if (this.view) {
      this.main.append(this.view.element);
      this.view.session.on("change", () => this.#named());
      this.view.session.on("phase", () => this.#named());
    }
    this.#named();
  }

  /**
   * A link can be there before its session is; it leads there as soon as that is made.
   * @param {Listed} listed
   */
  #appeared({ session, summary, before }) {
    const isMissed = this.view?.session.uri === session && this.view.session.phase === "gone";
    if (!summary || before || !isMissed) return;
    this.#open(session);
    this.view?.goTo(placeOf(location.hash));
  }

  #named() {
    this.attention.at(this.view?.name ?? "");
  }

  /** What a wide page shows beside the list before anything is chosen. */
  #greet() {
    const { sessions } = this.host;
    if (sessions === undefined) return;
    const waiting = this.attention.waiting();
    const key = waiting.map(({ resource, title }) => `${resource} ${title}`).join("\n");
    if (key === this.greeted) return;
    this.greeted = key;
    const rest = waiting.length - MOST_GREETED;
    fill(this.welcome, ...(waiting.length > 0 ? needed(waiting, rest) : nothingNeeded()));
  }

  #search() {
    if (this.view && SMALL.matches) location.hash = "#/";
    this.sessions.search.focus();
  }

  #nextWaiting() {
    const waiting = this.attention.waiting();
    const at = waiting.findIndex((summary) => summary.resource === this.view?.session.uri);
    const next = waiting[(at + 1) % waiting.length];
    if (next) goTo(waitingHash(next.resource));
  }
}
