// On one's own machine nobody has a name. With others here, one is worth having.

/** @import { Host } from "../wire/host.js" */
/** @import { Room } from "./room.js" */
import { openDialog } from "./dialog.js";
import { h, show } from "./dom.js";
import { recall, remember } from "./memory.js";
import { afterClick } from "./pointer.js";

const LATER = "name-later";

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
    {
      class: "name-prompt",
      hidden: true,
      onsubmit: (/** @type {Event} */ event) => this.#save(event),
    },
    h("p", null, "What should the others here call you?"),
    h(
      "div",
      { class: "name-row" },
      this.input,
      h("button", { type: "submit", class: "small primary-quiet" }, "Save"),
      h(
        "button",
        { type: "button", class: "small quiet", onclick: () => this.#later() },
        "Not now",
      ),
    ),
  );

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
  }

  update() {
    const { me, session, access } = this.room;
    const isNameless = me !== undefined && me.name === undefined && !this.room.host.name;
    const isWanted =
      isNameless && access.mayAnswer && session.others.length > 0 && recall(LATER) === undefined;
    // It stands above what one reads, so it comes when nothing is being pressed, and does not go
    // while somebody writes in it.
    this.isWanted = isWanted;
    if (isWanted) afterClick(() => show(this.element, this.isWanted));
    else if (!this.element.contains(document.activeElement)) show(this.element, false);
  }

  /** @param {Event} event */
  #save(event) {
    event.preventDefault();
    const name = this.input.value.trim();
    if (name) this.room.host.setName(name);
    this.#close();
  }

  #later() {
    remember(LATER, "yes");
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
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    host.setName(input.value.trim());
    dialog.close();
  };
  const form = h(
    "form",
    { class: "share-form", onsubmit: save },
    h(
      "label",
      { class: "small-label", for: "own-name" },
      "Shown to others beside your answers, unless your link already names you",
    ),
    input,
    h(
      "div",
      { class: "dialog-actions" },
      h("button", { type: "submit", class: "primary" }, "Save"),
    ),
  );
  const dialog = openDialog("Your name", form);
  input.focus();
}
