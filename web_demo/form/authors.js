// The authors of answers and drafts: which of them are the viewer's own, and who else took part.

/** @import { DraftField } from "../client/drafts/draft-field.js" */
/** @import { Answer, Author, InputRequest, Present } from "../client/types.d.ts" */
import { isMe, nameOf } from "../text/format.js";

/**
 * People without names have the same author; with two of them present, it may be the other's.
 * @param {Pick<DraftField, "by" | "isOwn">} field
 * @param {readonly Present[]} others
 * @param {Author | undefined} me
 */
export function isOurs(field, others, me) {
  if (field.isOwn || field.by === undefined || isMe(field.by, me)) return true;
  return isAlike(field.by, me) && !others.some(({ by }) => isAlike(by, me));
}

/** @param {Author} by @param {Author | undefined} me */
export function isAlike(by, me) {
  return me === undefined || (by.id === me.id && by.name === me.name);
}

/**
 * Who else has answered or drafted something in these requests, or is typing.
 * @param {readonly InputRequest[]} requests
 * @param {readonly Present[]} others who else is here
 * @param {Author | undefined} me
 * @returns {readonly string[]} their names
 */
export function contributors(requests, others, me) {
  const answers = requests.flatMap(({ answers = {} }) => Object.values(answers));
  const layers = answers.flatMap((answer) => [answer._meta, coveredBy(answer)?._meta]);
  const authors = layers.flatMap((meta) => (meta?.by && !isAutomatic(meta.via) ? [meta.by] : []));
  const ids = requests.map(({ id }) => id);
  const writers = others.filter(({ editing }) => editing && ids.includes(editing.requestId));
  const foreign = authors.filter((by) => !isOurs({ by, isOwn: false }, others, me));
  const all = [...foreign, ...writers.map(({ by }) => by)];
  return [...new Set(all.map((by) => nameOf(by)))];
}

/** @param {Answer} answer */
const coveredBy = (answer) => (answer.state === "draft" ? answer._meta?.covers : undefined);

/** @param {string | undefined} via */
const isAutomatic = (via) => ["proposed", "default", "timeout"].includes(via ?? "");

/**
 * Empty for an unnamed local person: it might be anyone.
 * @param {Author | undefined} by
 * @param {Author | undefined} me
 */
export function byText(by, me) {
  const name = nameOf(by, me);
  return by === undefined || (name === "someone" && !isMe(by, me)) ? "" : ` by ${name}`;
}
