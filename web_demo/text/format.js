// Times, names, counts and values as text.

/** @import { Author, InputRequest, Question, Value } from "../client/types.d.ts" */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/**
 * The time of day, with the date if it was another day.
 * @param {number} at
 * @param {number} [now]
 */
export function timeOf(at, now = Date.now()) {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}

/** @param {number} at */
export function wholeTime(at) {
  return whole.format(at);
}

/**
 * How long ago, short enough for a list.
 * @param {number} at
 * @param {number} [now]
 */
export function ago(at, now = Date.now()) {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return "now";
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h`;
  return past < 7 * DAY ? `${Math.floor(past / DAY)} d` : day.format(at);
}

/**
 * Minutes and seconds that are left.
 * @param {number} left
 */
export function countdown(left) {
  const seconds = Math.max(0, Math.ceil(left / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** Clients on loopback without a token, maybe several people. */
const LOCAL = "local";
/** Clients with a link without a name. */
const SHARED = "share:";

/** @param {Author | undefined} author @param {Author | undefined} me */
export function isMe(author, me) {
  if (author === undefined || me === undefined || author.id !== me.id) return false;
  const mayBeSeveral = author.id === LOCAL || author.id.startsWith(SHARED);
  return !mayBeSeveral || (author.name !== undefined && author.name === me.name);
}

/** @param {Author | undefined} author @param {Author | undefined} [me] */
export function nameOf(author, me) {
  if (author === undefined) return "someone";
  if (isMe(author, me)) return "you";
  if (author.name) return author.name;
  if (author.id === LOCAL) return "someone";
  return author.id.startsWith(SHARED) ? "a guest" : author.id.replace(/^agent:/, "");
}

/**
 * @param {readonly string[]} names
 * @returns {string} “Ana”, “Ana and Ben”, “Ana, Ben and Cleo”
 */
export function listed(names) {
  const last = names.at(-1) ?? "";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {string} name */
export function initials(name) {
  const letters = name
    .split(/[\s@._-]+/)
    .filter(Boolean)
    .map((word) => [...word][0] ?? "");
  return letters.slice(0, 2).join("").toUpperCase() || "?";
}

/**
 * One of eight hues for a person, the same on every device.
 * @param {string} name
 */
export function hueOf(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return sum % 8;
}

/** @param {Question} question */
export function labelOf(question) {
  return question.title || question.message || question.id;
}

/** @param {InputRequest} request */
export function subjectOf(request) {
  const [first] = request.questions ?? [];
  return request.message || (first && labelOf(first)) || "A question";
}

/**
 * A value as a person reads it.
 * @param {Question} question
 * @param {Value | undefined} value
 */
export function valueText(question, value) {
  if (value === undefined) return "";
  switch (value.kind) {
    case "boolean":
      return value.value ? "Yes" : "No";
    case "selected":
      return chosen(question, value.value ? [value.value] : [], value.freeformValues);
    case "selected-many":
      return chosen(question, value.value, value.freeformValues);
    default:
      return String(value.value);
  }
}

/**
 * @param {Question} question
 * @param {readonly string[]} ids
 * @param {readonly string[] | undefined} own
 */
function chosen(question, ids, own) {
  const options = "options" in question ? question.options : [];
  const labels = ids.map((id) => options.find((option) => option.id === id)?.label ?? id);
  return [...labels, ...(own ?? [])].join(", ");
}
