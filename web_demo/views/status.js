// Whether what one sees is what there is: connecting, live, syncing, offline, reconnecting.

/** @import { Host } from "../wire/host.js" */
import { attribute, h, say, show } from "./dom.js";
import { capital } from "../text/words.js";

/** @type {Readonly<Record<string, string>>} */
const LONG = {
  connecting: "Connecting to the host…",
  reconnecting: "The connection was lost. Coming back…",
  offline: "What you write is kept, and sent when the host is back.",
};

export class ConnectionStatus {
  words = h("span", { class: "connection-words" });
  element = h(
    "p",
    { class: "connection", role: "status" },
    h("span", { class: "connection-dot", "aria-hidden": "true" }),
    this.words,
  );
  /** The same where the list, and with it the line above, is out of view. */
  chip = h("p", { class: "connection-chip", role: "status" });
  barWords = h("span", { dir: "auto" });
  again = h(
    "button",
    { type: "button", class: "small", onclick: () => this.host.retry() },
    "Try now",
  );
  bar = h(
    "div",
    { class: "connection-bar", role: "alert", hidden: true },
    this.barWords,
    this.again,
  );

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    host.on("status", () => this.update());
    this.update();
  }

  update() {
    const { phase, words, error, token } = this.host.status;
    attribute(this.element, "data-phase", phase);
    say(this.words, phase === "closed" ? "not connected" : words);
    const isQuiet = phase === "live" || phase === "offline" || phase === "closed";
    say(this.chip, isQuiet ? "" : capital(words));
    const isBad = phase === "offline" || phase === "closed";
    // Who is not let in for want of a token is told so in place of the page.
    show(this.bar, isBad && token === undefined);
    attribute(this.bar, "data-phase", phase);
    const long = phase === "closed" ? (error?.message ?? words) : longWords(phase, words);
    say(this.barWords, long);
    attribute(this.element, "title", long || "Everything you see is up to date.");
  }
}

/**
 * @param {string} phase
 * @param {string} words
 */
function longWords(phase, words) {
  const long = LONG[phase] ?? "";
  return phase === "offline" ? `${capital(words)}. ${long}` : long;
}
