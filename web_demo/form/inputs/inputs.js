// One input per kind of question, with a common interface.

/** @import { Question, Value } from "../../client/types.d.ts" */
import { declaredDefault } from "../../client/review.js";
import { BooleanInput } from "./boolean-input.js";
import { NumberInput } from "./number-input.js";
import { SelectInput } from "./select-input.js";
import { TextInput } from "./text-input.js";

/**
 * What an input reports to its question.
 * @typedef {{
 *   readonly id: string,
 *   edited(value: Value | undefined): void,
 *   left(): void,
 *   confirmed(): void,
 * }} InputEvents
 */

/**
 * `show` changes only what differs, so that the caret stays. `problem` is set if what was typed is
 * not a value. `pick` chooses an option by its digit.
 * @typedef {{
 *   readonly element: HTMLElement,
 *   value(): Value | undefined,
 *   show(value: Value | undefined): void,
 *   problem(): string | undefined,
 *   enable(isEnabled: boolean): void,
 *   focus(): void,
 *   mark(isInvalid: boolean, describedBy: string): void,
 *   pick?(digit: number): boolean,
 * }} QuestionInput
 */

/** @param {Question} question @param {InputEvents} events @returns {QuestionInput} */
export function inputFor(question, events) {
  switch (question.kind) {
    case "text":
      return new TextInput(question, events);
    case "number":
    case "integer":
      return new NumberInput(question, events);
    case "boolean":
      return new BooleanInput(question, events);
    default:
      return new SelectInput(question, events);
  }
}

/** Whether one label fits the input; a list of choices has one for each. */
/** @param {Question} question */
export function hasOneInput(question) {
  return question.kind === "text" || question.kind === "number" || question.kind === "integer";
}

/**
 * The asker's default, shown until something else is entered.
 * @param {Question} question
 * @returns {Value | undefined}
 */
export function defaultValueOf(question) {
  const value = declaredDefault(question);
  return value?.value === "" ? undefined : value;
}
