// Shown instead of the page when the host refuses access: what happened, and an input for a token
// or another link.

/** @import { Host } from "../client/host.js" */
import { counted } from "../text/format.js";
import { attribute, fill, h, icon, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { parseRoute } from "./routes.js";

/** @typedef {{ title: string, text: string }} Notice */

/** @type {Notice} */
const NEEDED = {
  title: "You need a link to get in",
  text: "If someone invited you, open the link they sent. If this is your own host, paste the link it printed at start-up.",
};
const ASK = "Ask the person who sent it for a new one.";

/**
 * The host's message only decides which of these texts is shown.
 * @param {string} reason
 * @returns {Notice}
 */
function refusalText(reason) {
  if (/expired/i.test(reason)) return { title: "This link has expired", text: ASK };
  if (/revoked/i.test(reason)) return { title: "This link was revoked", text: ASK };
  return {
    title: "This link does not work",
    text: `It does not belong to this host, or was not copied completely. ${ASK}`,
  };
}

export class Gate {
  title = h("h1", { tabindex: -1 });
  text = h("p", { class: "gate-text" });
  unsent = h("p", { class: "notice", hidden: true });
  input = h("input", {
    class: "field-input",
    id: "gate-token",
    placeholder: "Paste it here",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": "gate-problem",
    oninput: () => this.#updateButton(),
  });
  open = h("button", { type: "submit", class: "primary" }, "Open");
  problem = h("p", { class: "problem", id: "gate-problem", role: "alert", hidden: true });
  form = h(
    "form",
    { class: "gate-form", onsubmit: (event) => this.#submit(event) },
    h("label", { class: "hint", for: "gate-token" }, "A link or a token"),
    h("div", { class: "gate-row" }, this.input, this.open),
    this.problem,
  );
  mark = h("div", { class: "gate-mark" });
  element = h(
    "main",
    { class: "gate", hidden: true },
    h("div", { class: "gate-inside stack" }, this.mark, this.title, this.text, this.unsent, this.form),
  );
  /** Whether the token that is being tried was entered here. */
  isTried = false;

  /** @param {Host} host @param {(isClosed: boolean) => void} changed */
  constructor(host, changed) {
    this.host = host;
    this.changed = changed;
    host.on("status", () => this.update());
    this.update();
  }

  get isClosed() {
    return !this.element.hidden;
  }

  /** It stays open while a token is tried, until the host accepts it. */
  update() {
    const { phase, token } = this.host.status;
    const isRefused = phase === "closed" && token !== undefined;
    if (isRefused) this.#refused();
    if (this.host.isLive) this.#opened();
    const isTrying = this.isClosed && !isRefused && this.isTried;
    setText(this.open, isTrying ? "Opening…" : "Open");
    attribute(this.input, "readonly", isTrying);
    this.#updateButton();
  }

  #refused() {
    const { token, text, waiting } = this.host.status;
    const isFirst = !this.isClosed;
    if (this.isTried) {
      setText(this.problem, text);
      show(this.problem, true);
      this.input.select();
    } else if (token === "needed") this.#show(NEEDED, ICONS.key);
    else this.#show(refusalText(text), ICONS.link);
    show(this.unsent, waiting > 0);
    setText(this.unsent, `${counted(waiting, "change")} not sent yet. They are saved in this browser.`);
    this.isTried = false;
    show(this.element, true);
    if (!isFirst) return;
    this.changed(true);
    this.title.focus();
  }

  #opened() {
    this.isTried = false;
    if (!this.isClosed) return;
    this.input.value = "";
    show(this.problem, false);
    show(this.element, false);
    this.changed(false);
  }

  /** @param {Notice} notice @param {string} drawing */
  #show({ title, text }, drawing) {
    setText(this.title, title);
    setText(this.text, text);
    fill(this.mark, icon(drawing));
    document.title = `${title} · session-server`;
  }

  #updateButton() {
    this.open.disabled = this.input.value.trim() === "" || this.input.readOnly;
  }

  /**
   * A whole link may also name a session, which is then opened.
   * @param {Event} event
   */
  #submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (text === "" || this.input.readOnly) return;
    const hash = hashOf(text);
    if (parseRoute(hash).session !== undefined) location.hash = hash;
    this.isTried = true;
    show(this.problem, false);
    this.host.useToken(text);
    this.update();
  }
}

/** @param {string} text */
function hashOf(text) {
  try {
    return new URL(text).hash;
  } catch {
    return "";
  }
}

const BY_LINK =
  "This tab uses the link that you opened. New tabs use the access that this browser had before.";

/** For links that are opened in a browser with a token of its own: nothing is replaced without
 * asking. */
export class LinkBar {
  #isClosed = false;

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    const button = (/** @type {string} */ text, /** @type {() => void} */ act) =>
      h("button", { class: "small", onclick: () => this.#choose(act) }, text);
    this.everywhere = button("Use the link everywhere", () => host.storeToken());
    this.element = h(
      "div",
      { class: "link-bar row", role: "status", hidden: true },
      h("span", null, BY_LINK),
      button("Use my access here", () => host.useOtherToken()),
      this.everywhere,
      button("Close", () => {
        this.#isClosed = true;
      }),
    );
    host.on("status", () => this.#update());
  }

  /** @param {() => void} act */
  #choose(act) {
    act();
    this.#update();
  }

  #update() {
    const { status, isLive, hasOtherToken, isTokenStored } = this.host;
    if (status.phase === "closed") this.#isClosed = false;
    show(this.everywhere, !isTokenStored);
    show(this.element, isLive && hasOtherToken && !this.#isClosed);
  }
}
