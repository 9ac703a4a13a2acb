// Modal dialogs and menus. A dialog returns the focus when it closes.

/** @import { Child } from "./dom.js" */
import { attribute, fill, h, icon, show } from "./dom.js";
import { ICONS } from "./icons.js";

let made = 0;

/** @param {string} title @param {...Child} content */
export function openDialog(title, ...content) {
  const id = `dialog-${(made += 1)}`;
  const before = document.activeElement;
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": id },
    h(
      "div",
      { class: "dialog-inside" },
      h(
        "header",
        { class: "dialog-head" },
        h("h2", { id }, title),
        h(
          "button",
          {
            type: "button",
            class: "icon-button",
            "aria-label": "Close",
            onclick: () => dialog.close(),
          },
          icon(ICONS.close),
        ),
      ),
      ...content,
    ),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement) before.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// A menu under a button.

/** @typedef {{ label: string, icon: string, act: () => void, isOn?: boolean | undefined }} Item */

let menus = 0;

export class Menu {
  /**
   * @param {string} label
   * @param {() => readonly (Item | false)[]} items
   * @param {string} [drawing]
   */
  constructor(label, items, drawing = ICONS.dots) {
    this.items = items;
    const id = `menu-${(menus += 1)}`;
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
      h("span", null, item.label),
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
