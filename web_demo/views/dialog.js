// A modal dialog with a title, a way out, and the focus back where it was.

/** @import { Child } from "./dom.js" */
import { h, icon } from "./dom.js";
import { ICONS } from "./icons.js";

let made = 0;

/**
 * @param {string} title
 * @param {...Child} content
 */
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
