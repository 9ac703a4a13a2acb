// One input per kind of question, all with the same few methods.

/** @import { Question, Value } from "../wire/types.d.ts" */
import { BooleanField } from "./boolean-field.js";
import { NumberField } from "./number-field.js";
import { SelectField } from "./select-field.js";
import { TextField } from "./text-field.js";

/**
 * What a field tells its question.
 * @typedef {{
 *   readonly id: string,
 *   edited(value: Value | undefined): void,
 *   left(): void,
 *   confirmed(): void,
 * }} FieldEvents
 */

/**
 * `show` changes only what differs, so that a caret stays. `problem` is about what was typed and is
 * no value at all. `pick` chooses an option by its digit.
 * @typedef {{
 *   readonly element: HTMLElement,
 *   value(): Value | undefined,
 *   show(value: Value | undefined): void,
 *   problem(): string | undefined,
 *   enable(isEnabled: boolean): void,
 *   focus(): void,
 *   mark(isInvalid: boolean, describedBy: string): void,
 *   pick?(digit: number): boolean,
 * }} FieldInput
 */

/**
 * @param {Question} question
 * @param {FieldEvents} events
 * @returns {FieldInput}
 */
export function fieldFor(question, events) {
  switch (question.kind) {
    case "text":
      return new TextField(question, events);
    case "number":
    case "integer":
      return new NumberField(question, events);
    case "boolean":
      return new BooleanField(question, events);
    default:
      return new SelectField(question, events);
  }
}

/** Whether one label can stand for the input; a list of choices has one for each. */
/** @param {Question} question */
export function hasOneInput(question) {
  return question.kind === "text" || question.kind === "number" || question.kind === "integer";
}

/**
 * What the asker proposes, and the field shows until somebody writes something else.
 * @param {Question} question
 * @returns {Value | undefined}
 */
export function proposedBy(question) {
  switch (question.kind) {
    case "text":
      return question.defaultValue ? { kind: "text", value: question.defaultValue } : undefined;
    case "number":
    case "integer":
      return question.defaultValue === undefined
        ? undefined
        : { kind: "number", value: question.defaultValue };
    case "boolean":
      return question.defaultValue === undefined
        ? undefined
        : { kind: "boolean", value: question.defaultValue };
    default:
      return undefined;
  }
}
