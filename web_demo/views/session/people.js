// The people in a session, as initials or shapes, and the viewer's own name.

/** @import { Host } from "../../client/host.js" */
/** @import { Present } from "../../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
import { preference, setPreference } from "../../client/browser.js";
import { capital, hueOf, initials, nameOf } from "../../text/format.js";
import { afterClick, fill, h, icon, show, SMALL } from "../dom.js";
import { DialogForm, openDialog } from "../overlays.js";

const SHOWN = 5;
const SHOWN_ON_PHONES = 2;
const ROLES = { owner: "", agent: ", agent", answerer: ", answers", observer: ", watches" };

export class People {
  shown = "";
  element = h("ul", { class: "people", "aria-label": "Who is here" });

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
  }

  update() {
    // One entry per client.
    const clients = new Map(this.context.session.presence.map((each) => [each.clientId, each]));
    const present = [...clients.values()];
    const key = JSON.stringify(
      present.map(({ clientId, by, idle, role, editing }) => [clientId, by, idle, role, !editing]),
    );
    if (key === this.shown) return;
    this.shown = key;
    const own = this.context.host.clientId;
    const sorted = present.toSorted(
      (a, b) => Number(b.clientId === own) - Number(a.clientId === own),
    );
    const shapes = shapesOf(present.filter((each) => !each.by.name).map((each) => each.clientId));
    const most = SMALL.matches ? SHOWN_ON_PHONES : SHOWN;
    // “+1” would take as much space as the person.
    const shown = sorted.length > most + 1 ? most : sorted.length;
    const rest = sorted.length - shown;
    fill(
      this.element,
      ...sorted
        .slice(0, shown)
        .map((each) => person(each, each.clientId === own, shapes.get(each.clientId))),
      rest > 0 && h("li", { class: "person more", title: `${rest} more` }, `+${rest}`),
    );
  }
}

/** @param {Present} present @param {boolean} isSelf @param {Shape | undefined} shape */
function person(present, isSelf, shape) {
  const name = capital(nameOf(present.by));
  const role = ROLES[present.role ?? "owner"];
  const doing = `${present.idle ? ", away" : ""}${present.editing && !isSelf ? ", writing" : ""}`;
  const label = `${displayName(name, isSelf, shape)}${role}${doing}`;
  const mark = shape ? icon(shape.path) : initials(name);
  return h(
    "li",
    {
      class: "person",
      title: label,
      "data-hue": shape ? shape.hue : hueOf(name),
      "data-idle": present.idle === true,
      "data-writing": present.editing !== undefined && !isSelf,
      "data-self": isSelf,
    },
    h("span", { class: "person-mark", "aria-hidden": "true" }, mark),
    h("span", { class: "unseen" }, label),
  );
}

/** @param {string} name @param {boolean} isSelf @param {Shape | undefined} shape */
function displayName(name, isSelf, shape) {
  if (shape === undefined) return isSelf ? `${name} (you)` : name;
  return isSelf ? `You, without a name (${shape.name})` : `${name} without a name (${shape.name})`;
}

// For people without a name: a shape and a hue each, the same on every device, and unique while
// there are enough shapes.

/** @typedef {{ name: string, path: string, hue: number }} Shape */

const SHAPES = /** @type {const} */ ([
  ["star", "m8 2.5 1.7 3.5 3.8.5-2.8 2.7.7 3.8L8 11.2 4.6 13l.7-3.8-2.8-2.7 3.8-.5z"],
  ["leaf", "M3 13c0-6 3-9.5 10-10-.2 7-3.5 10-8.2 8.5M3 13l5-5"],
  ["moon", "M12.5 9.8A5.2 5.2 0 0 1 6.2 3.5a5.2 5.2 0 1 0 6.3 6.3z"],
  ["drop", "M8 2.5c2.7 3 4 5 4 6.8a4 4 0 0 1-8 0c0-1.8 1.3-3.8 4-6.8z"],
  ["heart", "M8 13 3.2 8.2a2.9 2.9 0 0 1 4.1-4.1L8 4.8l.7-.7a2.9 2.9 0 0 1 4.1 4.1z"],
  ["cloud", "M4.8 12a2.5 2.5 0 0 1 0-5A3.5 3.5 0 0 1 11.5 7.2a2.4 2.4 0 0 1-.2 4.8z"],
  ["peak", "m2 12.5 4.2-7.5 2.6 4.5 1.4-2 3.8 5z"],
  ["sun", "M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM8 2v1M8 13v1M2 8h1M13 8h1M3.8 3.8l.7.7M11.5 11.5l.7.7M12.2 3.8l-.7.7M4.5 11.5l-.7.7"],
]);

/** @param {readonly string[]} clients @returns {Map<string, Shape>} */
function shapesOf(clients) {
  /** @type {Map<string, Shape>} */
  const shapes = new Map();
  /** @type {Set<number>} */
  const taken = new Set();
  for (const client of clients.toSorted()) {
    if (taken.size === SHAPES.length) taken.clear();
    let at = hueOf(client) % SHAPES.length;
    while (taken.has(at)) at = (at + 1) % SHAPES.length;
    taken.add(at);
    const [name, path] = SHAPES[at] ?? SHAPES[0];
    shapes.set(client, { name, path, hue: at });
  }
  return shapes;
}

// Asks for a name when others are in the session.

const NOT_NOW = "name-later";

export class NamePrompt {
  isWanted = false;
  input = h("input", {
    class: "field-input",
    "aria-label": "Your name",
    placeholder: "Your name",
    autocomplete: "given-name",
    maxlength: 80,
  });
  element = h(
    "form",
    { class: "name-prompt row", hidden: true, onsubmit: (event) => this.#save(event) },
    h("p", null, "What should the others here call you?"),
    h(
      "div",
      { class: "name-row" },
      this.input,
      h("button", { type: "submit", class: "small primary-quiet" }, "Save"),
      h("button", { class: "small quiet", onclick: () => this.#later() }, "Not now"),
    ),
  );

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
  }

  update() {
    const { me, session, access } = this.context;
    const isNameless = me !== undefined && me.name === undefined && !this.context.host.name;
    const isWanted =
      isNameless && access.mayAnswer && session.others.length > 0 && preference(NOT_NOW) === undefined;
    // It moves what is below it, so it appears after the click in progress, and stays while it has
    // the focus.
    this.isWanted = isWanted;
    if (isWanted) afterClick(() => show(this.element, this.isWanted));
    else if (!this.element.contains(document.activeElement)) show(this.element, false);
  }

  /** @param {Event} event */
  #save(event) {
    event.preventDefault();
    const name = this.input.value.trim();
    if (name) this.context.host.setName(name);
    this.#close();
  }

  #later() {
    setPreference(NOT_NOW, "yes");
    this.#close();
  }

  #close() {
    this.isWanted = false;
    show(this.element, false);
  }
}

/** @param {Host} host */
export function chooseName(host) {
  const input = h("input", {
    class: "field-input",
    id: "own-name",
    autocomplete: "given-name",
    maxlength: 80,
  });
  input.value = host.name ?? "";
  const save = async () => {
    host.setName(input.value.trim());
    dialog.close();
  };
  const about = "Shown to others next to your answers, unless your link already has a name";
  const label = h("label", { class: "hint", for: "own-name" }, about);
  const dialog = openDialog("Your name", new DialogForm("Save", save, label, input).element);
  input.focus();
}
