// What stands in place of the page for whoever is not let in: what happened, in the words of a guest,
// and a field for those who have a token or another link.

/** @import { Host } from "../wire/host.js" */
import { attribute, fill, h, icon, say, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { placeOf } from "./places.js";
import { counted } from "../text/words.js";

/** @typedef {{ title: string, text: string }} Told */

/** @type {Told} */
const NEEDED = {
  title: "You need a link to get in",
  text: "If someone invited you, open the link they sent. If this is your own host, paste the link it printed at start-up.",
};
const ASK = "Ask the person who sent it for a new one.";

/**
 * The host tells why in words of its own; they decide only which of ours fits best.
 * @param {string} words
 * @returns {Told}
 */
function refusedWords(words) {
  if (/expired/i.test(words)) return { title: "This link has expired", text: ASK };
  if (/revoked/i.test(words)) return { title: "This link was revoked", text: ASK };
  return {
    title: "This link does not work",
    text: `It is not one of this host’s, or not all of it was copied. ${ASK}`,
  };
}

export class Gate {
  title = h("h1", { tabindex: -1 });
  text = h("p", { class: "gate-text" });
  kept = h("p", { class: "gate-kept", hidden: true });
  input = h("input", {
    class: "field-input",
    id: "gate-token",
    placeholder: "Paste it here",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": "gate-problem",
    oninput: () => this.#fit(),
  });
  open = h("button", { type: "submit", class: "primary" }, "Open");
  problem = h("p", { class: "problem", id: "gate-problem", role: "alert", hidden: true });
  form = h(
    "form",
    { class: "gate-form", onsubmit: (/** @type {Event} */ event) => this.#use(event) },
    h("label", { class: "small-label", for: "gate-token" }, "A link or a token"),
    h("div", { class: "gate-row" }, this.input, this.open),
    this.problem,
  );
  mark = h("div", { class: "gate-mark" });
  element = h(
    "main",
    { class: "gate", hidden: true },
    h(
      "div",
      { class: "gate-inside" },
      this.mark,
      this.title,
      this.text,
      this.kept,
      this.form,
    ),
  );
  /** Whether what is tried was given here. */
  isTried = false;

  /**
   * @param {Host} host
   * @param {(isClosed: boolean) => void} changed
   */
  constructor(host, changed) {
    this.host = host;
    this.changed = changed;
    host.on("status", () => this.update());
    this.update();
  }

  get isClosed() {
    return !this.element.hidden;
  }

  /** It stays while something is tried, until that has opened. */
  update() {
    const { phase, token } = this.host.status;
    const isOpen = phase === "live" || phase === "syncing";
    const isRefused = phase === "closed" && token !== undefined;
    if (isRefused) this.#refuse();
    if (isOpen) this.#admit();
    const isTrying = this.isClosed && !isRefused;
    say(this.open, isTrying && this.isTried ? "Opening…" : "Open");
    attribute(this.input, "readonly", isTrying && this.isTried);
    this.#fit();
  }

  #refuse() {
    const { token, words, waiting } = this.host.status;
    const isFirst = !this.isClosed;
    if (this.isTried) this.#complain(words);
    else if (token === "needed") this.#tell(NEEDED, ICONS.key);
    else this.#tell(refusedWords(words), ICONS.link);
    show(this.kept, waiting > 0);
    say(this.kept, `${counted(waiting, "change")} of yours that had not arrived stay in this browser.`);
    this.isTried = false;
    show(this.element, true);
    if (!isFirst) return;
    this.changed(true);
    this.title.focus();
  }

  #admit() {
    this.isTried = false;
    if (!this.isClosed) return;
    this.input.value = "";
    show(this.problem, false);
    show(this.element, false);
    this.changed(false);
  }

  /**
   * @param {Told} told
   * @param {string} drawing
   */
  #tell({ title, text }, drawing) {
    say(this.title, title);
    say(this.text, text);
    fill(this.mark, icon(drawing));
    document.title = `${title} · session-server`;
  }

  /** @param {string} words */
  #complain(words) {
    say(this.problem, words);
    show(this.problem, true);
    this.input.select();
  }

  #fit() {
    this.open.disabled = this.input.value.trim() === "" || this.input.readOnly;
  }

  /**
   * A whole link may name a session as well, and that is where it leads.
   * @param {Event} event
   */
  #use(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (text === "" || this.input.readOnly) return;
    const hash = hashOf(text);
    if (placeOf(hash).session !== undefined) location.hash = hash;
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
