// Two versions of one answer, and what was written before: shown side by side, for a person to choose.

/** @import { Question } from "../wire/types.d.ts" */
/** @import { Field } from "../wire/drafts.js" */
import { announce } from "../views/announcer.js";
import { h } from "../views/dom.js";
import { capital, labelOf, nameOf, wordsOf } from "../text/words.js";

/**
 * @param {Question} question
 * @param {Field} field
 * @param {NonNullable<Field["theirs"]>} theirs
 * @param {() => void} goOn
 */
export function conflictParts(question, field, theirs, goOn) {
  const who = capital(nameOf(theirs.by));
  const words = theirs.value === undefined ? "" : wordsOf(question, theirs.value);
  announce(`${who} changed ${labelOf(question)}. Two versions: use theirs or keep yours.`);
  return [
    h("p", null, h("bdi", { class: "who" }, who), words ? " changed this to" : " cleared this"),
    words ? h("blockquote", { class: "their-words", dir: "auto" }, words) : null,
    h(
      "div",
      { class: "conflict-actions" },
      choice("", "Use theirs", () => field.useTheirs(), goOn),
      choice("primary-quiet", "Keep mine", () => field.keepMine(), goOn),
    ),
  ];
}

/**
 * @param {Question} question
 * @param {Field} field
 * @param {NonNullable<Field["offer"]>} offer
 * @param {() => void} goOn
 */
export function offerParts(question, field, offer, goOn) {
  return [
    h("p", null, "You wrote this before, and it was never sent:"),
    h("blockquote", { class: "their-words", dir: "auto" }, wordsOf(question, offer.value)),
    h(
      "div",
      { class: "conflict-actions" },
      choice("primary-quiet", "Use it", () => field.useOffer(), goOn),
      choice("quiet", "Discard", () => field.dropOffer(), goOn),
    ),
  ];
}

/**
 * @param {string} kind
 * @param {string} words
 * @param {() => void} act
 * @param {() => void} goOn
 */
function choice(kind, words, act, goOn) {
  const chosen = () => {
    act();
    goOn();
  };
  return h("button", { type: "button", class: `small ${kind}`, onclick: chosen }, words);
}
