// What the person at this page may do here, and the words for what they may not. The host decides;
// this only keeps people from trying in vain.

/** @import { Host } from "../wire/host.js" */
/** @import { Role } from "../wire/types.d.ts" */
import { h, show } from "./dom.js";

/**
 * `why` is said once, above the session; controls that are off point to it.
 * @typedef {{ role: Role | undefined, mayAnswer: boolean, mayDirect: boolean, isRecording: boolean, why: string }} Access
 */

/** Where `why` stands. */
export const WHY_ID = "why";

/** @type {Readonly<Record<string, string>>} */
const WHY = {
  observer: "You can view this session, but not answer or change anything.",
  answerer: "You can answer questions. Only the owner can change anything else.",
  agent: "You are connected as an agent, which cannot answer questions.",
};
const RECORDED = "This is a recording. You can view it, but not change it.";

/**
 * @param {Role | undefined} role unknown until the host has told
 * @param {boolean} isRecording
 * @returns {Access}
 */
export function accessOf(role, isRecording) {
  if (isRecording) return { role, mayAnswer: false, mayDirect: false, isRecording, why: RECORDED };
  return {
    role,
    isRecording,
    mayAnswer: role === undefined || role === "owner" || role === "answerer",
    mayDirect: role === undefined || role === "owner",
    why: WHY[role ?? ""] ?? "",
  };
}

const BY_LINK =
  "This tab uses the link that you opened. New tabs use the access that this browser had before.";

/** For who opened a link in a browser that has access already: nothing is replaced unasked. */
export class LinkBar {
  #isClosed = false;

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    const button = (/** @type {string} */ words, /** @type {() => void} */ act) =>
      h("button", { type: "button", class: "small", onclick: () => this.#choose(act) }, words);
    this.keep = button("Use the link everywhere", () => host.keepToken());
    this.element = h(
      "div",
      { class: "link-bar", role: "status", hidden: true },
      h("span", null, BY_LINK),
      button("Use my access here", () => host.useOtherToken()),
      this.keep,
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
    const { phase } = this.host.status;
    const isIn = phase === "live" || phase === "syncing";
    if (phase === "closed") this.#isClosed = false;
    show(this.keep, !this.host.isTokenKept);
    show(this.element, isIn && this.host.hasOtherToken && !this.#isClosed);
  }
}
