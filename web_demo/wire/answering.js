/**
 * The questions of one session: a field for each, and what became of those that closed.
 */

/**
 * @import {
 *   ActionEnvelope, Answer, Author, EditingPlace, InputCompleted, InputRequest, Question, ResponseKind,
 *   SessionState, Value,
 * } from "./types.d.ts"
 */
/** @import {AnyMirror} from "./channels.js" */
/** @import {Desk} from "./desk.d.ts" */
/** @import {KeptDraft} from "./kept.js" */
/** @import {Change} from "./mirror.js" */
import { Field } from "./drafts.js";
import { Events } from "./events.js";
import { answerTo, openRequest } from "./reducers/requests.js";
import { same } from "./reducers/updates.js";
import { decided } from "./review.js";

/**
 * A question that closed while we watched, with all that was answered. `own`: by us. `ownAnswers`:
 * the questions whose answers were given here. `unsent`: what was typed here and did not get in.
 *
 * @typedef {{
 *   request: InputRequest, response?: ResponseKind, by?: Author, at?: number, own: boolean,
 *   ownAnswers: readonly string[], unsent: Record<string, Value>,
 * }} Closing
 */

/** How many closed questions are remembered. */
const CLOSINGS = 64;

/**
 * What the questions need of their session.
 *
 * @typedef {Pick<Desk, "uri" | "kept" | "send" | "isWriting" | "typing">
 *   & { isLive: () => boolean }} Surroundings
 */

/**
 * @extends {Events<{ field: Field, closed: Closing }>}
 * @implements {Desk}
 */
export class Answering extends Events {
  /** @type {Map<string, Closing>} */ closings = new Map();
  /** @type {Map<string, Field>} */ #fields = new Map();
  #mirror;
  #surroundings;
  /** @type {SessionState | undefined} */ #known;

  /**
   * @param {AnyMirror} mirror
   * @param {Surroundings} surroundings
   */
  constructor(mirror, surroundings) {
    super();
    this.#mirror = mirror;
    this.#surroundings = surroundings;
    this.uri = surroundings.uri;
    this.kept = surroundings.kept;
    this.send = surroundings.send;
    this.isWriting = surroundings.isWriting;
    this.typing = surroundings.typing;
    mirror.on("change", (change) => this.#follow(change));
  }

  // For fields

  get isLive() {
    return this.#surroundings.isLive();
  }

  /**
   * Whether the whole form is on its way: drafts behind it would come too late.
   *
   * @param {string} requestId
   */
  isCompleting(requestId) {
    return this.#mirror.pending.some(
      ({ action }) => action.type === "session/inputCompleted" && action.requestId === requestId,
    );
  }

  /**
   * @param {string} requestId
   * @param {string} questionId
   * @returns {Question | undefined}
   */
  question(requestId, questionId) {
    const request =
      openRequest(this.#mirror.confirmed, requestId) ?? this.closings.get(requestId)?.request;
    return request?.questions?.find((question) => question.id === questionId);
  }

  /** @param {Field} field */
  fieldChanged(field) {
    this.emit("field", field);
  }

  // For the session

  /** Fields with something that the host does not have yet. */
  get waiting() {
    return [...this.#fields.values()].filter((field) => field.isWaiting).length;
  }

  /**
   * The same field each time, until its request closes.
   *
   * @param {string} requestId
   * @param {string} questionId
   * @returns {Field}
   */
  field(requestId, questionId) {
    const name = nameOf(requestId, questionId);
    const known = this.#fields.get(name);
    if (known) return known;
    const request = openRequest(this.#mirror.confirmed, requestId);
    const field = new Field(this, requestId, questionId, answerTo(request, questionId));
    if (!request && this.closings.has(requestId)) field.close(undefined);
    else this.#fields.set(name, field);
    return field;
  }

  /**
   * What accepting would submit: everything as it is shown, apart from what is submitted already.
   *
   * @param {string} requestId
   * @returns {Record<string, Answer>}
   */
  answers(requestId) {
    const request = openRequest(this.#mirror.confirmed, requestId);
    const shown = (request?.questions ?? []).map((question) => {
      const { answer, isDirty } = this.field(requestId, question.id);
      return [question.id, isDirty || answer?.state === "draft" ? submitted(answer) : undefined];
    });
    return Object.fromEntries(shown.filter(([, answer]) => answer));
  }

  /** @param {string} requestId */
  fieldsOf(requestId) {
    return [...this.#fields.values()].filter((field) => field.requestId === requestId);
  }

  /** Before the page goes. */
  flush() {
    for (const field of this.#fields.values()) field.flush();
  }

  /**
   * Somebody wrote there, and does no longer.
   *
   * @param {EditingPlace} place
   */
  paused({ requestId, questionId }) {
    this.#fields.get(nameOf(requestId, questionId))?.paused();
  }

  /** The connection is there again. */
  live() {
    for (const field of this.#fields.values()) field.live();
  }

  /**
   * Takes up what was not sent: by this tab before a reload, or by tabs that are gone.
   *
   * @param {(tab: string) => boolean} isOurs
   */
  restore(isOurs) {
    for (const draft of this.kept.drafts(this.uri)) {
      if (isOurs(draft.tab)) this.#restore(draft);
    }
  }

  /** @param {KeptDraft} draft */
  #restore(draft) {
    const { requestId, questionId } = draft;
    if (openRequest(this.#mirror.confirmed, requestId) && this.question(requestId, questionId)) {
      this.field(requestId, questionId).restore(draft);
    } else {
      this.kept.keepTextOf(draft);
      this.kept.dropDraft(draft);
    }
  }

  /** @param {Change<SessionState>} change */
  #follow({ cause, action, envelope }) {
    const { confirmed } = this.#mirror;
    const isUndone = cause === "rejected" || cause === "withdrawn";
    if (isUndone && action?.type === "session/inputCompleted") {
      for (const field of this.fieldsOf(action.requestId)) field.goOn();
    }
    const before = this.#known;
    if (!confirmed || confirmed === before) return;
    this.#known = confirmed;
    for (const request of before?.inputRequests ?? []) {
      if (!openRequest(confirmed, request.id)) this.#close(request, envelope);
    }
    for (const request of confirmed.inputRequests ?? []) {
      const earlier = openRequest(before, request.id);
      if (earlier !== request) this.#compare(earlier, request, envelope);
    }
  }

  /**
   * @param {InputRequest | undefined} before
   * @param {InputRequest} request
   * @param {ActionEnvelope | undefined} envelope
   */
  #compare(before, request, envelope) {
    for (const field of this.fieldsOf(request.id)) {
      if (before?.questions !== request.questions) field.asked();
      const answer = answerTo(request, field.questionId);
      if (!same(answerTo(before, field.questionId), answer)) {
        field.took(answer, this.#ownSeq(envelope));
      } else if (!envelope) field.took(answer);
    }
  }

  /**
   * @param {InputRequest} request
   * @param {ActionEnvelope | undefined} envelope
   */
  #close(request, envelope) {
    const { action } = envelope ?? {};
    const completed = action?.type === "session/inputCompleted" ? action : undefined;
    const own = completed !== undefined && this.#ownSeq(envelope) !== undefined;
    /** @type {Closing} */
    const closing = {
      request: answered(request, completed),
      response: completed?.response,
      by: envelope?._meta?.by,
      at: envelope?._meta?.at,
      own,
      ownAnswers: this.#ownAnswers(request, completed, own),
      unsent: {},
    };
    this.#remember(closing);
    const unsent = this.fieldsOf(request.id).map((field) => {
      this.#fields.delete(nameOf(field.requestId, field.questionId));
      return [field.questionId, field.close(outcome(request, completed, field.questionId))];
    });
    closing.unsent = Object.fromEntries(unsent.filter(([, value]) => value));
    this.emit("closed", closing);
  }

  /**
   * What was answered here before, and what came with the completion if that was ours.
   *
   * @param {InputRequest} request
   * @param {InputCompleted | undefined} completed
   * @param {boolean} isOurs
   */
  #ownAnswers(request, completed, isOurs) {
    const brought = Object.keys(completed?.answers ?? {});
    const before = this.fieldsOf(request.id).filter((field) => field.isOwn && field.by);
    const given = before.map((field) => field.questionId).filter((id) => !brought.includes(id));
    return isOurs ? [...given, ...brought] : given;
  }

  /** @param {Closing} closing */
  #remember(closing) {
    this.closings.delete(closing.request.id);
    this.closings.set(closing.request.id, closing);
    const [oldest] = this.closings.keys();
    if (this.closings.size > CLOSINGS && oldest !== undefined) this.closings.delete(oldest);
  }

  /**
   * @param {ActionEnvelope | undefined} envelope
   * @returns {number | undefined}
   */
  #ownSeq(envelope) {
    const origin = envelope?.origin;
    return origin?.clientId === this.#mirror.clientId ? origin?.clientSeq : undefined;
  }
}

/**
 * @param {string} requestId
 * @param {string} questionId
 */
const nameOf = (requestId, questionId) => JSON.stringify([requestId, questionId]);

/**
 * @param {Answer | undefined} answer
 * @returns {Answer | undefined}
 */
const submitted = (answer) =>
  answer?.state === "draft" ? { state: "submitted", value: answer.value } : answer;

/**
 * The request with what its completion brought: over what was there, but no drafts.
 *
 * @param {InputRequest} request
 * @param {InputCompleted | undefined} completed
 * @returns {InputRequest}
 */
function answered(request, completed) {
  const brought = Object.entries(completed?.answers ?? {}).filter(
    ([, answer]) => answer.state !== "draft",
  );
  if (brought.length === 0) return request;
  return { ...request, answers: { ...request.answers, ...Object.fromEntries(brought) } };
}

/**
 * What was accepted as the answer to a question, if anything was.
 *
 * @param {InputRequest} request
 * @param {InputCompleted | undefined} completed
 * @param {string} questionId
 * @returns {Answer | undefined}
 */
function outcome(request, completed, questionId) {
  if (completed?.response !== "accept") return undefined;
  const given = answerTo({ ...request, answers: completed.answers }, questionId);
  const answer = decided(given) ?? decided(answerTo(request, questionId));
  return answer?.state === "submitted" ? answer : undefined;
}
