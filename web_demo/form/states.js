// Where a question stands, for marks, words and what Accept would send.

/** @import { Answer, Author, Present, Question, Value } from "../wire/types.d.ts" */
/** @import { Field } from "../wire/drafts.js" */
import { capital, isMe, nameOf, timeOf } from "../text/words.js";
import { proposedBy } from "./fields.js";

/** @typedef {"empty" | "proposed" | "draft" | "foreign" | "conflict" | "submitted" | "skipped"} Standing */

/**
 * `foreign` is a draft that somebody else wrote or is writing: it is theirs to submit.
 * @param {Question} question
 * @param {Field} field
 * @param {readonly Present[]} writers others who are in this field right now
 * @param {Author | undefined} me
 * @returns {Standing}
 */
export function standingOf(question, field, writers, me) {
  if (field.theirs) return "conflict";
  if (field.state === "draft") {
    // People on one machine may look the same to the host; then it counts who is in the field.
    const isOurs = field.isOwn || (isSameAuthor(field.by, me) && writers.length === 0);
    return isOurs ? "draft" : "foreign";
  }
  if (field.state === "empty" && proposedBy(question)) return "proposed";
  return field.state;
}

/**
 * What the field shows: somebody's answer, or what the asker proposes.
 * @param {Question} question
 * @param {Field} field
 * @returns {Value | undefined}
 */
export function shownValue(question, field) {
  return field.state === "empty" ? proposedBy(question) : field.value;
}

/**
 * @param {Standing} standing
 * @param {Field} field
 * @param {readonly Present[]} writers
 * @param {Author | undefined} me
 */
export function standingWords(standing, field, writers, me) {
  if (writers.length > 0) return writingWords(writers);
  const when = field.at === undefined ? "" : ` ${timeOf(field.at)}`;
  switch (standing) {
    case "submitted":
      return field.isDirty ? "Submitting…" : `Submitted${byWords(field.by, me)}${when}`;
    case "skipped":
      return `Skipped${byWords(field.by, me)}${when}`;
    case "conflict":
      return "Two versions";
    case "foreign":
      return `Draft${byWords(field.by, me)}, not submitted`;
    case "draft":
      return field.isDirty ? "Draft, not saved yet" : "Draft saved";
    case "proposed":
      return "Proposed";
    default:
      return "Not answered";
  }
}

/** @param {readonly Present[]} writers */
function writingWords(writers) {
  const names = [...new Set(writers.map((writer) => capital(nameOf(writer.by))))];
  if (names.length > 2) return `${names[0]} and ${names.length - 1} others are writing`;
  return `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} writing`;
}

/**
 * Nothing for an unnamed person on this machine: it might be anyone.
 * @param {Author | undefined} by
 * @param {Author | undefined} me
 */
export function byWords(by, me) {
  const name = nameOf(by, me);
  return by === undefined || (name === "someone" && !isMe(by, me)) ? "" : ` by ${name}`;
}

/**
 * @param {Author | undefined} by
 * @param {Author | undefined} me
 */
function isSameAuthor(by, me) {
  return by === undefined || me === undefined || (by.id === me.id && by.name === me.name);
}

/** @param {Answer | undefined} answer */
export function isAnswered(answer) {
  return answer?.state === "submitted" || answer?.state === "skipped";
}
