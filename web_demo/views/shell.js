// The frame of the page: the list next to a session, or one of them on a phone.

/** @import { Host } from "../client/host.js" */
/** @import { Listed } from "../client/session-list.js" */
/** @import { SessionSummary } from "../client/types.d.ts" */
/** @import { Attention } from "./attention.js" */
import { capital, counted } from "../text/format.js";
import { Viewer } from "./access.js";
import { attribute, fill, h, iconButton, setText, show, SMALL } from "./dom.js";
import { Gate, LinkBar } from "./gate.js";
import { ICONS } from "./icons.js";
import { NewSessionDialog } from "./new-session.js";
import { navigate, parseRoute, waitingHash } from "./routes.js";
import { SessionListView } from "./session-list-view.js";
import { SessionView } from "./session/session-view.js";
import { listenToKeys, settingsMenu, showKeys } from "./settings.js";

const WELCOME_LIMIT = 5;

/** @param {SessionSummary} summary */
function waitingItem(summary) {
  return h(
    "li",
    null,
    h(
      "a",
      { class: "welcome-item row", href: waitingHash(summary.resource) },
      h("bdi", { class: "row-title one-line" }, summary.title || "Untitled"),
      h("span", { class: "row-answer" }, "Answer"),
    ),
  );
}

/** @param {readonly SessionSummary[]} waiting @param {number} rest */
function waitingList(waiting, rest) {
  const verb = waiting.length === 1 ? "needs" : "need";
  return [
    h("h2", null, `${counted(waiting.length, "session")} ${verb} input`),
    h("ul", { class: "welcome-list stack" }, ...waiting.slice(0, WELCOME_LIMIT).map(waitingItem)),
    rest > 0 && h("p", null, `and ${rest} more in the list`),
  ];
}

function nothingWaiting() {
  return [
    h("img", { class: "welcome-mark", src: "icon.svg", alt: "", width: 40, height: 40 }),
    h("h2", null, "Nothing needs you"),
    h("p", null, "Questions appear here as soon as an agent or a tool asks."),
  ];
}

export class Shell {
  /** @type {SessionView | undefined} */
  view = undefined;
  /** @type {string | undefined} */
  shownWelcome = undefined;
  welcome = h("div", { class: "welcome empty" });

  /** @param {Host} host @param {Attention} attention */
  constructor(host, attention) {
    this.host = host;
    this.attention = attention;
    this.viewer = new Viewer(host);
    const create = () => this.#create();
    const about = { title: "New session (n)", hidden: true };
    this.creating = iconButton(ICONS.plus, "New session", create, about);
    const status = new ConnectionBar(host);
    this.sessions = new SessionListView(host, this.viewer, create);
    const mark = h("img", { src: "icon.svg", alt: "", width: 20, height: 20 });
    this.sidebar = h(
      "div",
      { class: "sidebar", "aria-label": "Overview" },
      h(
        "div",
        { class: "sidebar-head row" },
        h("h1", { class: "brand row" }, mark, "session-server"),
        this.creating,
        settingsMenu(host, attention).element,
      ),
      this.sessions.element,
      h("div", { class: "sidebar-foot" }, status.element),
    );
    this.main = h("main", { id: "main", tabindex: -1 }, this.welcome);
    this.panes = h("div", { class: "panes" }, this.sidebar, this.main);
    const skip = () => this.main.focus();
    this.skip = h("button", { class: "skip-link", onclick: skip }, "Skip to the session");
    this.gate = new Gate(host, (isClosed) => this.#showPage(!isClosed));
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
    show(this.creating, this.viewer.mayCreate);
    this.#showWelcome();
    this.go();
  }

  /** @param {() => void} create */
  #listen(create) {
    const search = () => this.#search();
    listenToKeys({ "/": search, n: create, w: () => this.#nextWaiting(), "?": showKeys });
    this.host.on("sessions", () => this.#showWelcome());
    this.host.on("summary", (listed) => this.#sessionAdded(listed));
    this.viewer.on("change", () => show(this.creating, this.viewer.mayCreate));
    addEventListener("hashchange", () => this.go());
    SMALL.addEventListener("change", () => this.#landmarks());
  }

  /** @param {boolean} isIn otherwise only the gate is shown */
  #showPage(isIn) {
    show(this.panes, isIn);
    show(this.skip, isIn);
    attribute(this.element, "data-closed", !isIn);
    if (isIn) this.attention.update();
    else for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  }

  #create() {
    if (this.viewer.mayCreate && !this.gate.isClosed) new NewSessionDialog(this.host).open();
  }

  /** Shows what the address names. */
  go() {
    const route = parseRoute(location.hash);
    attribute(this.element, "data-view", route.session ? "session" : "list");
    this.#landmarks();
    this.sessions.current(route.session);
    if (route.session !== this.view?.session.uri) this.#open(route.session);
    this.view?.goTo(route);
  }

  /** On a phone the list alone is the main landmark. */
  #landmarks() {
    const isAlone = SMALL.matches && this.element.dataset["view"] === "list";
    attribute(this.sidebar, "role", isAlone ? "main" : "complementary");
  }

  /** @param {string | undefined} uri */
  #open(uri) {
    this.view?.remove();
    this.view?.element.remove();
    this.view = uri === undefined ? undefined : new SessionView(this.host, this.viewer, uri);
    show(this.welcome, this.view === undefined);
    if (this.view) {
      this.main.append(this.view.element);
      this.view.session.on("change", () => this.#titleChanged());
      this.view.session.on("phase", () => this.#titleChanged());
    }
    this.#titleChanged();
  }

  /**
   * A link may be opened before its session exists; it is shown as soon as it does.
   * @param {Listed} listed
   */
  #sessionAdded({ session, summary, before }) {
    const isMissed = this.view?.session.uri === session && this.view.session.phase === "gone";
    if (!summary || before || !isMissed) return;
    this.#open(session);
    this.view?.goTo(parseRoute(location.hash));
  }

  #titleChanged() {
    this.attention.at(this.view?.name ?? "");
  }

  /** Shown next to the list while no session is open. */
  #showWelcome() {
    const { sessions } = this.host;
    if (sessions === undefined) return;
    const waiting = this.attention.waiting();
    const key = waiting.map(({ resource, title }) => `${resource} ${title}`).join("\n");
    if (key === this.shownWelcome) return;
    this.shownWelcome = key;
    const rest = waiting.length - WELCOME_LIMIT;
    fill(this.welcome, ...(waiting.length > 0 ? waitingList(waiting, rest) : nothingWaiting()));
  }

  #search() {
    if (this.view && SMALL.matches) location.hash = "#/";
    this.sessions.search.focus();
  }

  #nextWaiting() {
    const waiting = this.attention.waiting();
    const at = waiting.findIndex((summary) => summary.resource === this.view?.session.uri);
    const next = waiting[(at + 1) % waiting.length];
    if (next) navigate(waitingHash(next.resource));
  }
}

// The status of the connection: a line under the list, a chip, and a bar for problems.

/** @type {Readonly<Record<string, string>>} */
const LONG = {
  connecting: "Connecting to the host…",
  reconnecting: "The connection was lost. Reconnecting…",
  offline: "Your changes are saved in this browser and sent when you reconnect.",
};

class ConnectionBar {
  text = h("span", { class: "connection-text" });
  element = h(
    "p",
    { class: "connection row hint", role: "status" },
    h("span", { class: "connection-dot", "aria-hidden": "true" }),
    this.text,
  );
  /** The same, where the list is not visible. */
  chip = h("p", { class: "connection-chip", role: "status" });
  barText = h("span", { dir: "auto" });
  bar = h(
    "div",
    { class: "connection-bar row", role: "alert", hidden: true },
    this.barText,
    h("button", { class: "small", onclick: () => this.host.retry() }, "Try now"),
  );

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    host.on("status", () => this.update());
    this.update();
  }

  update() {
    const { phase, text, error, token } = this.host.status;
    attribute(this.element, "data-phase", phase);
    setText(this.text, phase === "closed" ? "not connected" : text);
    const isBad = phase === "offline" || phase === "closed";
    setText(this.chip, phase === "live" || isBad ? "" : capital(text));
    // A missing token is shown by the gate instead.
    show(this.bar, isBad && token === undefined);
    attribute(this.bar, "data-phase", phase);
    const offline = phase === "offline" ? `${capital(text)}. ` : "";
    const long = phase === "closed" ? (error?.message ?? text) : offline + (LONG[phase] ?? "");
    setText(this.barText, long);
    attribute(this.element, "title", long || "Everything you see is up to date.");
  }
}
