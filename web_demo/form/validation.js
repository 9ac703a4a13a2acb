// Validation of values in the page, with the same messages as the host, which validates again.
// Patterns that could hang the browser are left to the host.

/**
 * @import {
 *   IntegerQuestion, MultiSelectQuestion, NumberQuestion, Question, TextQuestion, Value,
 * } from "../client/types.d.ts"
 */
import { counted } from "../text/format.js";

const EMAIL = /^[^\s@]+@[^\s@]+$/;
const URI = /^[a-z][a-z0-9+.-]*:\S+$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Shown for a required question without an answer. */
export const NEEDED = "This needs an answer.";

/** @type {Readonly<Record<string, [RegExp, string]>>} */
const FORMATS = {
  email: [EMAIL, "an e-mail address, such as ana@example.com"],
  uri: [URI, "a full address, such as https://example.com"],
  date: [DATE, "a date, such as 2026-07-28"],
  "date-time": [DATE_TIME, "a date and time with its zone, such as 2026-07-28T14:00:00Z"],
};

/** A browser's picker needs no example. */
/** @type {Readonly<Record<string, string>>} */
const PICKED = { date: "a date", "date-time": "a date and time, in your time zone" };

/**
 * Why this value is not valid for this question, if so.
 * @param {Question} question
 * @param {Value} value
 * @returns {string | undefined}
 */
export function problemWith(question, value) {
  if (question.kind === "text" && value.kind === "text") return textProblem(question, value.value);
  if ((question.kind === "number" || question.kind === "integer") && value.kind === "number") {
    return numberProblem(question, value.value);
  }
  if (question.kind === "multi-select" && value.kind === "selected-many") {
    return countProblem(question, value.value.length + (value.freeformValues?.length ?? 0));
  }
  return undefined;
}

/**
 * The constraints of a question, shown below it.
 * @param {Question} question
 */
export function constraintsOf(question) {
  switch (question.kind) {
    case "text":
      return textConstraints(question);
    case "number":
    case "integer":
      return range(
        question.min,
        question.max,
        question.kind === "integer" ? "A whole number" : "A number",
      );
    case "multi-select":
      return selectConstraints(question);
    default:
      return "";
  }
}

/** @param {TextQuestion} question @param {string} text */
function textProblem(question, text) {
  const size = [...text].length;
  if (question.required && text.trim() === "")
    return size > 0 ? "Enter an answer; spaces alone don’t count." : NEEDED;
  if (question.min !== undefined && size < question.min) {
    return `Needs at least ${counted(question.min, "character")}; this has ${size}.`;
  }
  if (question.max !== undefined && size > question.max) {
    return `Takes at most ${counted(question.max, "character")}; this has ${size}.`;
  }
  const [format, expected] = FORMATS[question.format ?? ""] ?? [];
  if (format && !format.test(text)) return `Must be ${expected}.`;
  const { pattern } = question._meta ?? {};
  return pattern && failsPattern(pattern, text) ? `Must match the pattern ${pattern}.` : undefined;
}

/** @param {NumberQuestion | IntegerQuestion} question @param {number} number */
function numberProblem(question, number) {
  if (question.kind === "integer" && !Number.isInteger(number)) return "Must be a whole number.";
  if (question.kind === "integer" && !Number.isSafeInteger(number)) {
    return `This page can write whole numbers up to ${Number.MAX_SAFE_INTEGER}.`;
  }
  if (question.min !== undefined && number < question.min)
    return `Must be at least ${question.min}.`;
  if (question.max !== undefined && number > question.max)
    return `Must be at most ${question.max}.`;
  return undefined;
}

/** @param {MultiSelectQuestion} question @param {number} count */
function countProblem(question, count) {
  if (question.min !== undefined && count < question.min) {
    return `Needs at least ${counted(question.min, "choice")}; this has ${count}.`;
  }
  if (question.max !== undefined && count > question.max) {
    return `Takes at most ${counted(question.max, "choice")}; this has ${count}.`;
  }
  return undefined;
}

/** @param {TextQuestion} question */
function textConstraints(question) {
  const constraints = [];
  const format = FORMATS[question.format ?? ""];
  const expected = PICKED[question.format ?? ""] ?? format?.[1];
  if (expected) constraints.push(expected.replace(/^./, (first) => first.toUpperCase()));
  if (question.min !== undefined && question.min > 0) {
    constraints.push(`At least ${counted(question.min, "character")}`);
  }
  if (question.max !== undefined) constraints.push(`At most ${counted(question.max, "character")}`);
  if (question._meta?.pattern) constraints.push(`Must match the pattern ${question._meta.pattern}`);
  return constraints.join(". ");
}

/** @param {MultiSelectQuestion} question */
function selectConstraints(question) {
  const { min, max } = question;
  if (min && max) return min === max ? `Select ${min}` : `Select ${min} to ${max}`;
  if (max) return `Select up to ${max}`;
  return min ? `Select at least ${min}` : "Select all that apply";
}

/** @param {number | undefined} min @param {number | undefined} max @param {string} what */
function range(min, max, what) {
  if (min !== undefined && max !== undefined) return `${what} from ${min} to ${max}`;
  if (min !== undefined) return `${what}, at least ${min}`;
  return max !== undefined ? `${what}, at most ${max}` : what;
}

// Untrusted patterns. Browsers use backtracking, which can take exponential time; such patterns are
// left to the host, which has a linear-time engine.

const LONGEST_PATTERN = 200;
const LONGEST_TEXT = 500;
/** Each further one can multiply the time by the length of the text. */
const MOST_OPEN_ENDS = 2;

/** Repeated groups, back references, and lookaround. */
const UNSAFE = /\)[*+?{]|\\[1-9k]|\(\?/;
const OPEN_ENDS = /[*+]|\{\d*,\}/g;

/**
 * Whether this text certainly does not match; `false` if that is unknown.
 * @param {string} pattern
 * @param {string} text
 */
export function failsPattern(pattern, text) {
  if (!isSafe(pattern) || text.length > LONGEST_TEXT) return false;
  try {
    return !new RegExp(pattern, "u").test(text);
  } catch {
    return false; // written for another regex engine
  }
}

/** @param {string} pattern */
function isSafe(pattern) {
  if (pattern.length > LONGEST_PATTERN || UNSAFE.test(pattern)) return false;
  return (pattern.match(OPEN_ENDS)?.length ?? 0) <= MOST_OPEN_ENDS;
}
