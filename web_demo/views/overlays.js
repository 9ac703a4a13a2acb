// Modal dialogs and menus. A dialog returns the focus when it closes.

/** @import { Child } from "./dom.js" */
import { attribute, fill, h, icon, iconButton, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { messageOf } from "./toasts.js";

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
      { class: "dialog-inside stack" },
      h(
        "header",
        { class: "dialog-head row" },
        h("h2", { id }, title),
        iconButton(ICONS.close, "Close", () => dialog.close()),
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

/** A form in a dialog, with the problem that its submission had. */
export class DialogForm {
  problem = h("p", { class: "problem", role: "alert", hidden: true });

  /**
   * @param {string} label of the button that submits it
   * @param {() => Promise<void>} submit
   * @param {...Child} content
   */
  constructor(label, submit, ...content) {
    this.button = h("button", { type: "submit", class: "primary" }, label);
    this.element = h(
      "form",
      { class: "stack", onsubmit: (event) => this.#submit(event, submit) },
      ...content,
      this.problem,
      h("div", { class: "dialog-actions" }, this.button),
    );
  }

  /** @param {Event} event @param {() => Promise<void>} submit */
  async #submit(event, submit) {
    event.preventDefault();
    this.button.disabled = true;
    show(this.problem, false);
    try {
      await submit();
    } catch (error) {
      setText(this.problem, messageOf(error));
      show(this.problem, true);
    }
    this.button.disabled = false;
  }
}

// A menu under a button.

/** @typedef {{ label: string, icon: string, act: () => void, isOn?: boolean | undefined }} Item */

export class Menu {
  /** @param {string} label @param {() => readonly (Item | false)[]} items */
  constructor(label, items) {
    this.items = items;
    const id = `menu-${(made += 1)}`;
    this.list = h("div", {
      class: "menu",
      role: "menu",
      id,
      "aria-label": label,
      hidden: true,
      onkeydown: (event) => this.#key(event),
    });
    this.button = iconButton(ICONS.dots, label, () => this.#toggle(), {
      title: label,
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-controls": id,
    });
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
    const act = () => {
      this.#closeAndFocus();
      item.act();
    };
    const checked = item.isOn === undefined ? undefined : String(item.isOn);
    const role = checked === undefined ? "menuitem" : "menuitemcheckbox";
    return h(
      "button",
      { role, class: "menu-item", tabindex: -1, "aria-checked": checked, onclick: act },
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
      this.#closeAndFocus();
    }
  }

  #closeAndFocus() {
    this.close();
    this.button.focus();
  }
}
