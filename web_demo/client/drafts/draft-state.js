/**
 * The draft of one question as a state machine: which event leads from which phase to which.
 *
 * synced     the field shows what the host has
 * unsent     edited here; the host still has the answer that the edit is based on
 * sending    sent, and not confirmed yet
 * contested  edited here, and someone else changed it too: nothing is sent until a person chooses
 * emptied    an answer was emptied by typing: nothing is sent, and the answer still counts
 * refused    the host refused what is shown
 *
 * Pure: no timers, no storage, no network. `session_server/cli/form/draft_state.py` has the same table for
 * the terminal, and both run the cases of `tests/corpus/draft_field.json`. Outside of the table are only
 * `restoredDraft` and `returnedDraft`: the terminal stores no drafts and offers no replaced ones.
 */

/** @import { Answer, Author, Value } from "../types.d.ts" */
import { withoutMeta } from "../echoes.js";
import { same } from "../reducers/updates.js";

/** @typedef {"synced" | "unsent" | "sending" | "contested" | "emptied" | "refused"} DraftPhase */

/**
 * `base` is the last answer that both the field and the host had. `isOwn`: what is shown was made
 * here. `atHost` is what the host has, with its `_meta`.
 *
 * @typedef {{
 *   phase: DraftPhase, shown: Answer | undefined, base: Answer | undefined,
 *   atHost: Answer | undefined, isOwn: boolean,
 * }} DraftState
 */

/**
 * edited: by typing or choosing. decided: submitted, skipped or cleared on purpose. sent, confirmed,
 * refused, failed: what became of what was sent; `isLast`: nothing else is on its way. received:
 * someone else's answer; `isTyping`: a person is typing here. left: the field lost the focus.
 *
 * @typedef {{
 *   type: "edited" | "decided" | "sent" | "confirmed" | "refused" | "failed" | "received"
 *     | "keptMine" | "usedTheirs" | "left",
 *   answer?: Answer | undefined, isLast?: boolean, isTyping?: boolean,
 * }} DraftEvent
 */

/** @typedef {(state: DraftState, event: DraftEvent) => boolean} Condition */
/** @typedef {(state: DraftState, event: DraftEvent) => Partial<DraftState>} Change */

// Conditions

/** @type {Condition} */ const always = () => true;
/** @type {Condition} */ const isBase = ({ base }, { answer }) => same(withoutMeta(answer), base);
/** @type {Condition} */ const isShown = ({ shown }, { answer }) => same(withoutMeta(answer), shown);
/** @type {Condition} */ const isAtHost = ({ atHost }, { answer }) => agree(answer, atHost);
/** @type {Condition} */ const agrees = ({ shown }, { answer }) => agree(answer, shown);
/** @type {Condition} */ const isTyping = (_, event) => event.isTyping === true;
/** @type {Condition} */ const isMore = (_, event) => event.isLast === false;
/** @type {Condition} */ const isEdited = ({ shown, base }) => !same(shown, base);
/** @type {Condition} */
const empties = ({ atHost }, { answer }) => !answer && isDecided(atHost);
/** @type {Condition} */
const discards = ({ shown, atHost }, { answer }) =>
  !answer && shown?.state === "draft" && isDecided(atHost);
/** @type {Condition} A cleared draft uncovers the answer below it. */
const uncovers = ({ shown }, { answer }) => !shown && isDecided(answer);
/** @type {Condition} An emptied field has nothing to lose. */
const isAtStake = (state, event) => event.isTyping === true || (isEdited(state, event) && !isBlank(state));
/** @type {Condition} Our answer counts more than the same text as a draft. */
const isDecision = (state, event) =>
  agrees(state, event) && state.shown?.state === "submitted" && event.answer?.state === "draft";
/** @type {Condition} */
const isBack = (state, event) => isBase(state, event) && uncovers(state, event);
/** @type {Condition} */
const uncoversTyping = (state, event) => uncovers(state, event) && isTyping(state, event);

/** @param {DraftState} state */
export const hasRemoteChange = ({ atHost, base, shown }) =>
  !same(withoutMeta(atHost), base) && !agree(atHost, shown);

/** @param {DraftState} state */
const isBlank = ({ shown, atHost }) => !shown && isDecided(atHost);

// Changes

/** @type {Change} */ const nothing = () => ({});
/** @type {Change} */ const show = (_, { answer }) => ({ shown: answer, isOwn: true });
/** @type {Change} */ const note = (_, { answer }) => ({ atHost: answer });
/** @type {Change} */
const rebase = (_, { answer }) => ({ atHost: answer, base: withoutMeta(answer) });
/** @param {Answer | undefined} answer - what the host has */
function synced(answer) {
  const base = withoutMeta(answer);
  return { atHost: answer, base, shown: base, isOwn: false };
}
/** @type {Change} */ const follow = (_, { answer }) => synced(answer);
/** @type {Change} */
const adopt = (state, event) => ({
  ...follow(state, event),
  isOwn: state.isOwn && state.shown?.state === event.answer?.state,
});
/** @type {Change} */ const followHost = ({ atHost }) => synced(atHost);
/** @type {Change} */ const useTheirs = ({ atHost }) => ({ ...synced(atHost), isOwn: true });
/** @type {Change} */ const keepShown = ({ atHost }) => ({ base: withoutMeta(atHost) });
/** @type {Change} */
const showOver = (state, event) => ({ ...show(state, event), base: withoutMeta(state.atHost) });

/** @type {readonly DraftPhase[]} */ const AT_REST = ["synced", "unsent", "refused", "emptied"];
/** @type {readonly DraftPhase[]} */ const ANY = [...AT_REST, "sending", "contested"];

/**
 * In these phases, on this event, if this holds: the next phase, and what changes. The first row that
 * fits counts; an event without a row changes nothing.
 *
 * @type {readonly (readonly [readonly DraftPhase[], DraftEvent["type"], Condition, DraftPhase, Change])[]}
 */
export const TABLE = [
  [AT_REST, "edited", empties, "emptied", show],
  [AT_REST, "edited", isBase, "synced", show],
  [AT_REST, "edited", always, "unsent", show],
  [["sending"], "edited", always, "sending", show],
  [["contested"], "edited", isAtHost, "unsent", show],
  [["contested"], "edited", always, "contested", show],

  [["unsent", "refused", "contested"], "decided", discards, "synced", followHost],
  [AT_REST, "decided", isBase, "synced", show],
  [AT_REST, "decided", always, "unsent", show],
  [["sending"], "decided", always, "sending", show],
  [["contested"], "decided", always, "unsent", showOver],

  [["synced", "unsent", "sending"], "sent", always, "sending", nothing],
  [["sending"], "confirmed", isMore, "sending", rebase],
  [ANY, "confirmed", isShown, "synced", rebase],
  [["sending"], "confirmed", uncoversTyping, "emptied", rebase],
  [["sending"], "confirmed", uncovers, "synced", follow],
  [ANY, "confirmed", always, "unsent", rebase],
  [["sending"], "failed", isMore, "sending", nothing],
  [["sending"], "failed", hasRemoteChange, "contested", nothing],
  [["sending"], "failed", isEdited, "unsent", nothing],
  [["sending"], "failed", always, "synced", nothing],
  [["sending"], "refused", hasRemoteChange, "contested", nothing],
  [["sending"], "refused", always, "refused", nothing],

  [["unsent", "contested"], "received", isDecision, "unsent", rebase],
  [["refused"], "received", isDecision, "refused", rebase],
  [["sending"], "received", isDecision, "sending", rebase],
  [["sending"], "received", agrees, "sending", adopt],
  [["sending"], "received", always, "sending", note],
  [ANY, "received", agrees, "synced", adopt],
  [["unsent"], "received", isBase, "unsent", note],
  [["refused"], "received", isBase, "refused", note],
  [["emptied"], "received", isBase, "emptied", note],
  [["contested"], "received", isBack, "emptied", note],
  [["contested"], "received", isBase, "unsent", note],
  [["unsent", "refused"], "received", always, "contested", note],
  [["synced", "emptied"], "received", isTyping, "contested", note],
  [["contested"], "received", isAtStake, "contested", note],
  [["synced", "emptied", "contested"], "received", always, "synced", follow],

  [["contested"], "keptMine", always, "unsent", keepShown],
  [["contested"], "usedTheirs", always, "synced", useTheirs],
  [["emptied"], "left", always, "synced", followHost],
];

/**
 * @param {Answer | undefined} atHost - what the host has
 * @returns {DraftState}
 */
export const initialDraft = (atHost) => ({ phase: "synced", ...synced(atHost) });

/**
 * A draft that was saved before the page was loaded again; what the host has is received next.
 *
 * @param {DraftState} state
 * @param {Answer | undefined} shown
 * @param {Answer | undefined} base
 * @returns {DraftState}
 */
export const restoredDraft = (state, shown, base) => ({
  ...state,
  phase: same(shown, base) ? "synced" : "unsent",
  shown,
  base,
  isOwn: true,
});

/**
 * The answer that was just received is what was typed here before somebody replaced it.
 *
 * @param {DraftState} state
 * @returns {DraftState}
 */
export const returnedDraft = (state) => ({ ...state, isOwn: true });

/** @param {DraftState} state @param {DraftEvent} event @returns {DraftState} */
export function transition(state, event) {
  const row = TABLE.find(
    ([phases, type, applies]) =>
      type === event.type && phases.includes(state.phase) && applies(state, event),
  );
  return row ? { ...state, ...row[4](state, event), phase: row[3] } : state;
}

// Answers

/** @typedef {{ value: Value | undefined, state: string, by?: Author, at?: number }} Version */

/** @param {Answer | undefined} answer @returns {Value | undefined} */
export const valueOf = (answer) =>
  answer && answer.state !== "skipped" ? answer.value : undefined;

/** @param {Answer | undefined} answer */
export const isDecided = (answer) => answer !== undefined && answer.state !== "draft";

/**
 * Whether two answers have the same content, draft or not.
 *
 * @param {Answer | undefined} one
 * @param {Answer | undefined} other
 */
export const agree = (one, other) =>
  same(valueOf(one), valueOf(other)) && (one?.state === "skipped") === (other?.state === "skipped");

const LETTER = /[\p{L}\p{N}]/u;

/**
 * Whether a newer value contains all of an older one, so that nothing is lost. "no" is not in "now".
 *
 * @param {Value | undefined} newer
 * @param {Value} older
 */
export function covers(newer, older) {
  if (newer?.kind === "text" && older.kind === "text") return containsText(newer.value, older.value);
  if (newer?.kind !== "selected-many" || older.kind !== "selected-many") return same(newer, older);
  const now = [...newer.value, ...(newer.freeformValues ?? [])];
  return [...older.value, ...(older.freeformValues ?? [])].every((chosen) => now.includes(chosen));
}

/** @param {string} text @param {string} part */
function containsText(text, part) {
  const at = text.indexOf(part);
  const around = [text.charAt(at - 1), text.charAt(at + part.length)];
  return at >= 0 && !around.some((letter) => LETTER.test(letter));
}

/**
 * Whether a value is typed letter by letter; a choice is complete as soon as it is made.
 *
 * @param {Value | undefined} value
 */
export const isTypedValue = (value) =>
  !value || value.kind === "text" || value.kind === "number" || "freeformValues" in value;
