// The dialog that creates a link to one session, with a role and an expiry.

/** @import { SessionContext } from "./session-context.js" */
import { wholeTime } from "../../text/format.js";
import { fill, h, icon, radioChoice, show, svg } from "../dom.js";
import { ICONS } from "../icons.js";
import { DialogForm, openDialog } from "../overlays.js";
import { idOf } from "../routes.js";
import { copyText } from "../toasts.js";

/** @typedef {{ url: string, role: string, expiresAt: number, qr: string, warning?: string }} Given */

const ROLES = [
  { id: "answerer", label: "Answer", may: "answer questions in this session", description: "Sees everything and answers questions." },
  { id: "observer", label: "View", may: "view this session", description: "Sees everything and changes nothing." },
  { id: "owner", label: "Manage (full access)", may: "manage this session", description: "Also starts turns and approves tools." },
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
  roles = ROLES.map(({ id, label, description }, index) =>
    radioChoice("share-role", id, index === 0, label, description),
  );
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
  result = h("div", { class: "stack", hidden: true });
  form = new DialogForm(
    "Create link",
    async () => this.#show(await this.#given()),
    h("fieldset", { class: "share-roles stack" }, h("legend", null, "Anyone with the link can"), ...this.roles),
    h("label", { class: "hint", for: "share-time" }, "Expires after"),
    this.time,
    h("label", { class: "hint", for: "share-name" }, "Name (optional)"),
    this.who,
  ).element;

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
  }

  open() {
    openDialog("Share this session", this.form, this.result);
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
    const { host, session } = this.context;
    return host.request(`v1/sessions/${encodeURIComponent(idOf(session.uri))}/shares`, wanted);
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
        { class: "share-hint hint" },
        isForOthers && "Scan it with a phone, or send the link. ",
        h("strong", null, `Anyone with this link can ${what}`),
        ` until ${wholeTime(given.expiresAt)}.`,
      ),
      given.warning ? h("p", { class: "share-warning notice" }, icon(ICONS.warning), given.warning) : null,
      h(
        "div",
        { class: "share-row" },
        link,
        h(
          "button",
          { class: "primary", onclick: () => copyText(given.url, "Link copied.") },
          icon(ICONS.copy),
          "Copy",
        ),
      ),
      h(
        "div",
        { class: "dialog-actions" },
        h("button", { class: "quiet", onclick: again }, "Create another link"),
      ),
    );
    show(this.form, false);
    show(this.result, true);
    link.focus();
  }
}

/**
 * A phone that scans a loopback link would look for the host on itself.
 * @param {string} url
 */
function isLoopback(url) {
  const { hostname } = new URL(url);
  return /^(127\.|\[::1\]$|localhost$|.*\.localhost$)/.test(hostname);
}

/**
 * The host's QR code, rebuilt from its paths: nothing of it is parsed as markup.
 * @param {string} source
 */
function drawnCode(source) {
  const box = /viewBox="([^"]*)"/.exec(source)?.[1] ?? "";
  const viewBox = NUMBERS.test(box) ? box : "0 0 1 1";
  const paths = [...source.matchAll(/<path[^>]*>/g)].flatMap(([element]) => {
    const d = /\bd="([^"]*)"/.exec(element)?.[1] ?? "";
    if (!STROKES.test(d)) return [];
    return [svg("path", { d, class: element.includes("stroke") ? "qr-dark" : "qr-light" })];
  });
  return svg("svg", { viewBox, role: "img", "aria-label": "The link as a QR code" }, ...paths);
}
