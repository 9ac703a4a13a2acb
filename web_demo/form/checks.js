// What the page can say about a value before the host does, in the host's words. The host checks
// again, and alone decides. A stranger's pattern that could hang this page is left to it.

/** @import { Question, Value, TextQuestion, NumberQuestion, IntegerQuestion, MultiSelectQuestion } from "../wire/types.d.ts" */
import { counted } from "../text/words.js";
import { isAmiss } from "./patterns.js";

const EMAIL = /^[^\s@]+@[^\s@]+$/;
const URI = /^[a-z][a-z0-9+.-]*:\S+$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** What a required question says that got nothing. */
export const NEEDED = "This needs an answer.";

/** @type {Readonly<Record<string, [RegExp, string]>>} */
const FORMATS = {
  email: [EMAIL, "an e-mail address, such as ana@example.com"],
  uri: [URI, "a full address, such as https://example.com"],
  date: [DATE, "a date, such as 2026-07-28"],
  "date-time": [DATE_TIME, "a date and time with its zone, such as 2026-07-28T14:00:00Z"],
};

/** What is chosen with the browser's own picker needs no example. */
/** @type {Readonly<Record<string, string>>} */
const PICKED = { date: "a date", "date-time": "a date and time, in your time zone" };

/**
 * Why this value is no answer to this question, if so.
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
 * What a question demands, said before anyone gets it wrong.
 * @param {Question} question
 */
export function demandsOf(question) {
  switch (question.kind) {
    case "text":
      return textDemands(question);
    case "number":
    case "integer":
      return range(
        question.min,
        question.max,
        question.kind === "integer" ? "A whole number" : "A number",
      );
    case "multi-select":
      return multiDemands(question);
    default:
      return "";
  }
}

/**
 * @param {TextQuestion} question
 * @param {string} text
 */
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
  const [form, words] = FORMATS[question.format ?? ""] ?? [];
  if (form && !form.test(text)) return `Must be ${words}.`;
  const { pattern } = question._meta ?? {};
  return pattern && isAmiss(pattern, text) ? `Must match the pattern ${pattern}.` : undefined;
}

/**
 * @param {NumberQuestion | IntegerQuestion} question
 * @param {number} number
 */
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

/**
 * @param {MultiSelectQuestion} question
 * @param {number} count
 */
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
function textDemands(question) {
  const demands = [];
  const format = FORMATS[question.format ?? ""];
  const words = PICKED[question.format ?? ""] ?? format?.[1];
  if (words) demands.push(words.replace(/^./, (first) => first.toUpperCase()));
  if (question.min !== undefined && question.min > 0) {
    demands.push(`At least ${counted(question.min, "character")}`);
  }
  if (question.max !== undefined) demands.push(`At most ${counted(question.max, "character")}`);
  if (question._meta?.pattern) demands.push(`Must match the pattern ${question._meta.pattern}`);
  return demands.join(". ");
}

/** @param {MultiSelectQuestion} question */
function multiDemands(question) {
  const { min, max } = question;
  if (min && max) return min === max ? `Select ${min}` : `Select ${min} to ${max}`;
  if (max) return `Select up to ${max}`;
  return min ? `Select at least ${min}` : "Select all that apply";
}

/**
 * @param {number | undefined} min
 * @param {number | undefined} max
 * @param {string} what
 */
function range(min, max, what) {
  if (min !== undefined && max !== undefined) return `${what} from ${min} to ${max}`;
  if (min !== undefined) return `${what}, at least ${min}`;
  return max !== undefined ? `${what}, at most ${max}` : what;
}
