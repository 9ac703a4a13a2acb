// A link for somebody else or for one's own phone: one session, one role, for a while.

/** @import { Room } from "./room.js" */
import { copyText } from "./clipboard.js";
import { openDialog } from "./dialog.js";
import { fill, h, icon, say, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { idOf } from "./places.js";
import { wholeTime } from "../text/words.js";

/** @typedef {{ url: string, role: string, expiresAt: number, qr: string, warning?: string }} Given */

const ROLES = [
  { id: "answerer", label: "Answer", may: "answer questions in this session", words: "Sees everything and answers questions." },
  { id: "observer", label: "View", may: "view this session", words: "Sees everything and changes nothing." },
  { id: "owner", label: "Manage (full access)", may: "manage this session", words: "Also starts turns and approves tools." },
];
const HOUR = 3600;
const TIMES = [
  { seconds: HOUR, label: "1 hour" },
  { seconds: 8 * HOUR, label: "8 hours" },
  { seconds: 24 * HOUR, label: "1 day" },
  { seconds: 7 * 24 * HOUR, label: "1 week" },
];
const NUMBERS = /^[-\d\s.]+$/;
const STROKES = /^[\d\s.,a-z-]+$/i;

export class ShareDialog {
  roles = ROLES.map(({ id, label, words }, index) => roleChoice(id, label, words, index === 0));
  time = h(
    "select",
    { class: "field-input", id: "share-time" },
    ...TIMES.map(({ seconds, label }) => h("option", { value: seconds }, label)),
  );
  who = h("input", {
    class: "field-input",
    id: "share-name",
    autocomplete: "off",
    maxlength: 80,
    placeholder: "Shown next to their answers",
  });
  make = h("button", { type: "submit", class: "primary" }, "Create link");
  problem = h("p", { class: "problem", role: "alert", hidden: true });
  result = h("div", { class: "share-result", hidden: true });
  form = h(
    "form",
    { class: "share-form", onsubmit: (/** @type {Event} */ event) => void this.#make(event) },
    h(
      "fieldset",
      { class: "share-roles" },
      h("legend", null, "Anyone with the link can"),
      ...this.roles,
    ),
    h("label", { class: "small-label", for: "share-time" }, "Expires after"),
    this.time,
    h("label", { class: "small-label", for: "share-name" }, "Name (optional)"),
    this.who,
    this.problem,
    h("div", { class: "dialog-actions" }, this.make),
  );

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
  }

  open() {
    openDialog("Share this session", this.form, this.result);
  }

  /** @param {Event} event */
  async #make(event) {
    event.preventDefault();
    this.make.disabled = true;
    show(this.problem, false);
    try {
      this.#show(await this.#given());
    } catch (error) {
      say(this.problem, error instanceof Error ? error.message : String(error));
      show(this.problem, true);
    }
    this.make.disabled = false;
  }

  /** @returns {Promise<Given>} */
  async #given() {
    const role = this.form.querySelector("input[name=share-role]:checked");
    const name = this.who.value.trim();
    const wanted = {
      role: role instanceof HTMLInputElement ? role.value : "observer",
      expiresIn: Number(this.time.value),
      ...(name ? { name } : {}),
    };
    const { token } = this.room.host;
    const response = await fetch(
      `v1/sessions/${encodeURIComponent(idOf(this.room.session.uri))}/shares`,
      {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...(token ? { Authorization: `Bearer ${token}` } : {}),
        },
        body: JSON.stringify(wanted),
      },
    );
    const answer = await response.json();
    if (!response.ok)
      throw new Error(answer.detail ?? answer.title ?? `The host answered ${response.status}.`);
    return answer;
  }

  /** @param {Given} given */
  #show(given) {
    const link = h("input", {
      class: "field-input share-link",
      readonly: true,
      "aria-label": "The link",
      value: given.url,
      onfocus: () => link.select(),
    });
    const again = () => {
      show(this.result, false);
      show(this.form, true);
    };
    const what = ROLES.find(({ id }) => id === given.role)?.may ?? given.role;
    const isForOthers = !isLoopback(given.url);
    fill(
      this.result,
      isForOthers && h("div", { class: "qr" }, drawnCode(given.qr)),
      h(
        "p",
        { class: "share-hint" },
        isForOthers && "Scan it with a phone, or send the link. ",
        h("strong", null, `Anyone with this link can ${what}`),
        ` until ${wholeTime(given.expiresAt)}.`,
      ),
      given.warning ? h("p", { class: "share-warning" }, icon(ICONS.warning), given.warning) : null,
      h(
        "div",
        { class: "share-row" },
        link,
        h(
          "button",
          {
            type: "button",
            class: "primary",
            onclick: () => void copyText(given.url, "Link copied."),
          },
          icon(ICONS.copy),
          "Copy",
        ),
      ),
      h(
        "div",
        { class: "dialog-actions" },
        h("button", { type: "button", class: "quiet", onclick: again }, "Create another link"),
      ),
    );
    show(this.form, false);
    show(this.result, true);
    link.focus();
  }
}

/**
 * A phone that scanned such a link would look for the host on itself.
 * @param {string} url
 */
function isLoopback(url) {
  const { hostname } = new URL(url);
  return /^(127\.|\[::1\]$|localhost$|.*\.localhost$)/.test(hostname);
}

/**
 * @param {string} id
 * @param {string} label
 * @param {string} words
 * @param {boolean} isFirst
 */
function roleChoice(id, label, words, isFirst) {
  const input = h("input", { type: "radio", name: "share-role", value: id, checked: isFirst });
  return h(
    "label",
    { class: "choice" },
    input,
    h(
      "span",
      { class: "choice-words" },
      h("span", { class: "choice-label" }, label),
      h("span", { class: "choice-description" }, words),
    ),
  );
}

/**
 * The host's picture of the link, drawn anew from its strokes: nothing of it is read as markup.
 * @param {string} svg
 */
function drawnCode(svg) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  const box = /viewBox="([^"]*)"/.exec(svg)?.[1] ?? "";
  picture.setAttribute("viewBox", NUMBERS.test(box) ? box : "0 0 1 1");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "The link as a QR code");
  for (const [element] of svg.matchAll(/<path[^>]*>/g)) {
    const strokes = /\bd="([^"]*)"/.exec(element)?.[1] ?? "";
    if (!STROKES.test(strokes)) continue;
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", strokes);
    path.setAttribute("class", element.includes("stroke") ? "qr-dark" : "qr-light");
    picture.append(path);
  }
  return picture;
}
