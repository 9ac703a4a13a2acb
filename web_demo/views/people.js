// Who is here, as a row of marks: initials, or a shape for those without a name.

/** @import { Present } from "../wire/types.d.ts" */
/** @import { Room } from "./room.js" */
import { SMALL, attribute, fill, h, icon } from "./dom.js";
import { capital, hueOf, initials, nameOf } from "../text/words.js";
import { shapesOf } from "./shapes.js";

/** @import { Shape } from "./shapes.js" */

const SHOWN = 5;
const SHOWN_ON_PHONES = 2;
const ROLES = { owner: "", agent: ", agent", answerer: ", answers", observer: ", watches" };

export class People {
  shown = "";

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
    this.element = h("ul", { class: "people", "aria-label": "Who is here" });
  }

  update() {
    const present = unique(this.room.session.presence);
    const key = JSON.stringify(
      present.map((each) => [
        each.clientId,
        each.by,
        each.idle,
        each.role,
        each.editing !== undefined,
      ]),
    );
    if (key === this.shown) return;
    this.shown = key;
    const own = this.room.host.clientId;
    const sorted = present.toSorted(
      (a, b) => Number(b.clientId === own) - Number(a.clientId === own),
    );
    const shapes = shapesOf(present.filter((each) => !each.by.name).map((each) => each.clientId));
    const most = SMALL.matches ? SHOWN_ON_PHONES : SHOWN;
    // A mark that says “+1” takes as much room as the person.
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

/**
 * One entry per connection, but a person with two tabs of the same name is one.
 * @param {readonly Present[]} present
 */
function unique(present) {
  /** @type {Map<string, Present>} */
  const known = new Map();
  for (const each of present) known.set(each.clientId, each);
  return [...known.values()];
}

/**
 * @param {Present} present
 * @param {boolean} isSelf
 * @param {Shape | undefined} shape
 */
function person(present, isSelf, shape) {
  const name = capital(nameOf(present.by));
  const words = `${calledAs(name, isSelf, shape)}${ROLES[present.role ?? "owner"]}${present.idle ? ", away" : ""}${present.editing && !isSelf ? ", writing" : ""}`;
  const hue = shape ? shape.hue : hueOf(name);
  const item = h("li", { class: "person", title: words, "data-hue": hue });
  attribute(item, "data-idle", present.idle === true);
  attribute(item, "data-writing", present.editing !== undefined && !isSelf);
  attribute(item, "data-self", isSelf);
  item.append(
    h(
      "span",
      { class: "person-mark", "aria-hidden": "true" },
      shape ? icon(shape.path) : initials(name),
    ),
    h("span", { class: "unseen" }, words),
  );
  return item;
}

/**
 * @param {string} name
 * @param {boolean} isSelf
 * @param {Shape | undefined} shape
 */
function calledAs(name, isSelf, shape) {
  if (shape === undefined) return isSelf ? `${name} (you)` : name;
  return isSelf ? `You, without a name (${shape.name})` : `${name} without a name (${shape.name})`;
}
