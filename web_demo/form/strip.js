// One mark per question, with its state: where the form stands at a glance, and the way to each.

/** @import { QuestionView } from "./question.js" */
import { attribute, fill, h } from "../views/dom.js";
import { labelOf } from "../text/words.js";
import { markOf } from "./question.js";
import { standingWords } from "./states.js";

export class Strip {
  /** @param {readonly QuestionView[]} views */
  constructor(views) {
    this.views = views;
    this.marks = views.map((view, index) =>
      h("button", { type: "button", class: "mark", onclick: () => view.focus() }, index + 1),
    );
    this.element = h(
      "nav",
      { class: "strip", "aria-label": "Questions" },
      h("div", { class: "strip-marks" }, ...this.marks),
    );
    /** @type {string[]} */
    this.shown = [];
  }

  update() {
    this.views.forEach((view, index) => {
      const standing = view.standing();
      const isWritten = view.writers().length > 0;
      const key = `${standing} ${isWritten} ${view.problem ?? view.field.error ?? ""}`;
      if (this.shown[index] === key) return;
      this.shown[index] = key;
      this.#show(index, view, isWritten);
    });
  }

  /**
   * @param {number} index
   * @param {QuestionView} view
   * @param {boolean} isWritten
   */
  #show(index, view, isWritten) {
    const mark = /** @type {HTMLButtonElement} */ (this.marks[index]);
    const standing = view.standing();
    const problem = view.problem ?? view.field.error;
    const words = standingWords(view.question, standing, view.field, view.writers(), view.room.me);
    const needs = view.question.required ? ", required" : "";
    attribute(mark, "data-standing", standing);
    attribute(mark, "data-writing", isWritten);
    attribute(mark, "data-problem", problem !== undefined);
    attribute(mark, "data-required", view.question.required);
    attribute(
      mark,
      "aria-label",
      `${index + 1}, ${labelOf(view.question)}${needs}: ${problem ?? words}`,
    );
    attribute(mark, "title", `${labelOf(view.question)}: ${problem ?? words}`);
    fill(mark, markOf(standing) ?? String(index + 1));
  }

  /** @param {QuestionView | undefined} view */
  current(view) {
    this.views.forEach((each, index) => {
      const mark = /** @type {HTMLButtonElement} */ (this.marks[index]);
      attribute(mark, "aria-current", each === view ? "step" : undefined);
    });
  }
}
