// Where a question stands, for marks, words and what Accept would send.

/** @import { Author, Present, Question, Value } from "../wire/types.d.ts" */
/** @import { Field } from "../wire/drafts.js" */
import { capital, isMe, nameOf, timeOf, wordsOf } from "../text/words.js";
import { hasOneInput, proposedBy } from "./fields.js";

/** @typedef {"empty" | "proposed" | "draft" | "foreign" | "outdated" | "conflict" | "submitted" | "skipped"} Standing */

/**
 * `foreign` is a draft that somebody else wrote: it is theirs to submit. `outdated` is an answer to
 * what the question was before. `proposed` is a default, or what the asker filled in.
 * @param {Question} question
 * @param {Field} field
 * @param {readonly Present[]} others who else is here
 * @param {Author | undefined} me
 * @returns {Standing}
 */
export function standingOf(question, field, others, me) {
  if (field.theirs) return "conflict";
  if (field.state === "draft") {
    if (field.isOutdated) return "outdated";
    if (field.via === "proposed") return "proposed";
    return isOurs(field, others, me) ? "draft" : "foreign";
  }
  if (field.state === "empty" && !field.isEmptied && proposedBy(question)) return "proposed";
  return field.state;
}

/** Answered or skipped for the form: it is sent with the others. */
/** @param {Standing} standing */
export const isSettled = (standing) => standing === "submitted" || standing === "skipped";

/**
 * People without names look the same to the host; with two of them here, it may be the other's.
 * @param {Field} field
 * @param {readonly Present[]} others
 * @param {Author | undefined} me
 */
function isOurs(field, others, me) {
  if (field.isOwn || field.by === undefined || isMe(field.by, me)) return true;
  return isAlike(field.by, me) && !others.some(({ by }) => isAlike(by, me));
}

/**
 * @param {Author} by
 * @param {Author | undefined} me
 */
function isAlike(by, me) {
  return me === undefined || (by.id === me.id && by.name === me.name);
}

/**
 * What the field shows: somebody's answer, or what the asker proposes.
 * @param {Question} question
 * @param {Field} field
 * @returns {Value | undefined}
 */
export function shownValue(question, field) {
  if (field.isEmptied) return undefined;
  return field.state === "empty" ? proposedBy(question) : field.value;
}

/**
 * @param {Question} question
 * @param {Standing} standing
 * @param {Field} field
 * @param {readonly Present[]} writers
 * @param {Author | undefined} me
 */
export function standingWords(question, standing, field, writers, me) {
  const doing = hasOneInput(question) ? "writing" : "answering";
  if (writers.length > 0) return writersText(writers, doing);
  const isMine = field.isOwn && field.by && isAlike(field.by, me);
  const by = isMine ? " by you" : byWords(field.by, me);
  const when = field.at === undefined ? "" : ` ${timeOf(field.at)}`;
  switch (standing) {
    case "submitted":
      return field.isDirty ? "Saving…" : `Done${by}${when}`;
    case "skipped":
      return `Skipped${by}${when}`;
    case "conflict":
      return "Conflict";
    case "foreign":
      return `Draft${by || " by someone"}`;
    case "draft":
      return field.isDirty ? "Draft, not saved yet" : "Draft saved";
    case "outdated":
      return `Answered${by} before the question changed`;
    case "proposed":
      return "Default";
    default:
      return "Not answered";
  }
}

/**
 * Which answer counts as long as the draft that is shown is not submitted.
 * @param {Question} question
 * @param {Field} field
 * @param {Author | undefined} me
 */
export function coveredWords(question, { covered }, me) {
  if (!covered) return "";
  const by = byWords(covered._meta?.by, me);
  if (covered.state === "skipped") return `. Until it is marked done, this stays skipped${by}`;
  return `. Until it is marked done, “${wordsOf(question, covered.value)}”${by} counts`;
}

/**
 * @param {readonly Present[]} writers
 * @param {"writing" | "answering"} doing
 */
function writersText(writers, doing) {
  const names = [...new Set(writers.map((writer) => capital(nameOf(writer.by))))];
  if (names.length > 2) return `${names[0]} and ${names.length - 1} others are ${doing}`;
  return `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} ${doing}`;
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
