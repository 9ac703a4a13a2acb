// Where a question stands, for marks, words and what Accept would send.

/** @import { Answer, Author, InputRequest, Present, Question, Value } from "../wire/types.d.ts" */
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
 * @param {Pick<Field, "by" | "isOwn">} field
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
 * Who else has answered or drafted something in these requests, or is about to.
 * @param {readonly InputRequest[]} requests
 * @param {readonly Present[]} others who else is here
 * @param {Author | undefined} me
 * @returns {readonly string[]} their names
 */
export function contributors(requests, others, me) {
  const answers = requests.flatMap(({ answers = {} }) => Object.values(answers));
  const layers = answers.flatMap((answer) => [answer._meta, coveredBy(answer)?._meta]);
  const authors = layers.flatMap((meta) => (meta?.by && !isUnasked(meta.via) ? [meta.by] : []));
  const ids = requests.map(({ id }) => id);
  const writers = others.filter(({ editing }) => editing && ids.includes(editing.requestId));
  const all = [...authors.filter((by) => !isOurs({ by, isOwn: false }, others, me)), ...writers.map(({ by }) => by)];
  return [...new Set(all.map((by) => nameOf(by)))];
}

/** @param {Answer} answer */
const coveredBy = (answer) => (answer.state === "draft" ? answer._meta?.covers : undefined);

/** @param {string | undefined} via */
const isUnasked = (via) => ["proposed", "default", "timeout"].includes(via ?? "");

/**
 * Nothing for an unnamed person on this machine: it might be anyone.
 * @param {Author | undefined} by
 * @param {Author | undefined} me
 */
export function byWords(by, me) {
  const name = nameOf(by, me);
  return by === undefined || (name === "someone" && !isMe(by, me)) ? "" : ` by ${name}`;
}
