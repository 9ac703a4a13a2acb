// A menu under a button.

import { attribute, fill, h, icon, show } from "./dom.js";
import { ICONS } from "./icons.js";

/** @typedef {{ words: string, icon: string, act: () => void, isOn?: boolean | undefined }} Item */

let made = 0;

export class Menu {
  /**
   * @param {string} label
   * @param {() => readonly (Item | false)[]} items
   * @param {string} [drawing]
   */
  constructor(label, items, drawing = ICONS.dots) {
    this.items = items;
    const id = `menu-${(made += 1)}`;
    this.list = h("div", {
      class: "menu",
      role: "menu",
      id,
      "aria-label": label,
      hidden: true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.button = h(
      "button",
      {
        type: "button",
        class: "icon-button",
        "aria-label": label,
        title: label,
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        "aria-controls": id,
        onclick: () => this.#toggle(),
      },
      icon(drawing),
    );
    this.element = h("div", { class: "menu-place" }, this.button, this.list);
    this.outside = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !this.element.contains(event.target)) this.close();
    };
  }

  #toggle() {
    if (this.list.hidden) this.#open();
    else this.close();
  }

  #open() {
    fill(this.list, ...this.items().map((item) => item && this.#item(item)));
    show(this.list, true);
    attribute(this.button, "aria-expanded", "true");
    document.addEventListener("pointerdown", this.outside);
    this.#buttons()[0]?.focus();
  }

  /** @param {Item} item */
  #item(item) {
    const role = item.isOn === undefined ? "menuitem" : "menuitemcheckbox";
    const act = () => {
      this.close();
      this.button.focus();
      item.act();
    };
    return h(
      "button",
      {
        type: "button",
        role,
        class: "menu-item",
        tabindex: -1,
        "aria-checked": item.isOn === undefined ? undefined : String(item.isOn),
        onclick: act,
      },
      icon(item.icon),
      h("span", null, item.words),
      item.isOn === true && icon(ICONS.check),
    );
  }

  close() {
    show(this.list, false);
    attribute(this.button, "aria-expanded", "false");
    document.removeEventListener("pointerdown", this.outside);
  }

  #buttons() {
    return [...this.list.querySelectorAll("button")];
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const buttons = this.#buttons();
    const at = buttons.findIndex((button) => button === document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      buttons.at(to % buttons.length)?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.stopPropagation();
      this.close();
      this.button.focus();
    }
  }
}
