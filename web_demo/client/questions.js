/** The questions of one session: a field for each, and the outcome of those that closed. */

/** @import { Change } from "./mirror.js" */
/** @import { Outbox } from "./outbox.js" */
/** @import { TypingIndicator } from "./presence.js" */
/** @import { Protocol } from "./connection/protocol.js" */
/** @import { BrowserStorage, StoredDraft } from "./storage.js" */
/** @import { AnyMirror } from "./connection/subscriptions.js" */
/**
 * @import {
 *   ActionEnvelope, Answer, Author, InputCompleted, InputRequest, Question,
 *   ResponseKind, SessionState, Value,
 * } from "./types.d.ts"
 */
import { DraftField } from "./drafts/draft-field.js";
import { Events } from "./events.js";
import { answerTo, openRequest } from "./reducers/input-requests.js";
import { same } from "./reducers/updates.js";
import { decided } from "./review.js";

/**
 * A request that closed while the page was open, with its answers. `own`: by us. `ownAnswers`: the
 * questions that were answered here. `unsent`: what was typed here and not included.
 *
 * @typedef {{
 *   request: InputRequest, response?: ResponseKind, by?: Author, at?: number, own: boolean,
 *   ownAnswers: readonly string[], unsent: Record<string, Value>,
 * }} Closing
 */

/** How many closed requests are remembered. */
const CLOSINGS = 64;

/**
 * @typedef {{
 *   protocol: Protocol, outbox: Outbox, storage: BrowserStorage, typing: TypingIndicator,
 * }} Services
 */

/** @extends {Events<{ field: DraftField, closed: Closing }>} */
export class Questions extends Events {
  /** @type {Map<string, Closing>} */ closings = new Map();
  /** @type {Map<string, DraftField>} */ #fields = new Map();
  #mirror;
  #protocol;
  /** @type {SessionState | undefined} */ #known;

  /** @param {AnyMirror} mirror @param {Services} services */
  constructor(mirror, { protocol, outbox, storage, typing }) {
    super();
    this.#mirror = mirror;
    this.#protocol = protocol;
    this.uri = mirror.channel;
    this.outbox = outbox;
    this.storage = storage;
    this.typing = typing;
    mirror.on("change", (change) => this.#follow(change));
    typing.on("stopped", ({ requestId, questionId }) => {
      this.#fields.get(keyOf(requestId, questionId))?.typingStopped();
    });
  }

  // For fields

  /**
   * Whether there is a connection, and the form is not being completed: a draft after that would
   * come too late.
   *
   * @param {string} requestId
   */
  canSendDrafts(requestId) {
    const isCompleting = this.#mirror.pending.some(
      ({ action }) => action.type === "session/inputCompleted" && action.requestId === requestId,
    );
    return this.#protocol.isLive && !isCompleting;
  }

  /** @param {string} requestId @param {string} questionId @returns {Question | undefined} */
  question(requestId, questionId) {
    const request =
      openRequest(this.#mirror.confirmed, requestId) ?? this.closings.get(requestId)?.request;
    return request?.questions?.find((question) => question.id === questionId);
  }

  // For the session

  /** Fields with something that the host does not have yet. */
  get waiting() {
    return [...this.#fields.values()].filter((field) => field.isWaiting).length;
  }

  /**
   * The same object each time, until its request closes.
   *
   * @param {string} requestId
   * @param {string} questionId
   * @returns {DraftField}
   */
  field(requestId, questionId) {
    const name = keyOf(requestId, questionId);
    const known = this.#fields.get(name);
    if (known) return known;
    const request = openRequest(this.#mirror.confirmed, requestId);
    const field = new DraftField(this, requestId, questionId, answerTo(request, questionId));
    if (!request && this.closings.has(requestId)) field.close(undefined);
    else this.#fields.set(name, field);
    return field;
  }

  /** @param {string} requestId */
  fieldsOf(requestId) {
    return [...this.#fields.values()].filter((field) => field.requestId === requestId);
  }

  /** Before the page closes. */
  flush() {
    for (const field of this.#fields.values()) field.flush();
  }

  reconnected() {
    for (const field of this.#fields.values()) field.reconnected();
  }

  /**
   * Restores unsent drafts: of this tab before a reload, or of closed tabs.
   *
   * @param {(tab: string) => boolean} isOurs
   */
  restore(isOurs) {
    const ours = this.storage.drafts(this.uri).filter((draft) => isOurs(draft.tab));
    const closed = ours.filter((draft) => !this.#restore(draft));
    for (const draft of closed) {
      this.storage.saveTextOf(draft);
      this.storage.dropDraft(draft);
    }
    // The same may have been asked again, and be on the screen already.
    if (closed.length) for (const field of this.#fields.values()) field.asked();
  }

  /** @param {StoredDraft} draft @returns {boolean} whether its question is still open */
  #restore(draft) {
    const { requestId, questionId } = draft;
    const isOpen = openRequest(this.#mirror.confirmed, requestId) !== undefined;
    if (!isOpen || !this.question(requestId, questionId)) return false;
    this.field(requestId, questionId).restore(draft);
    return true;
  }

  /** @param {Change<SessionState>} change */
  #follow({ cause, action, envelope }) {
    const { confirmed } = this.#mirror;
    const isUndone = cause === "rejected" || cause === "withdrawn";
    if (isUndone && action?.type === "session/inputCompleted") {
      for (const field of this.fieldsOf(action.requestId)) field.resume();
    }
    const before = this.#known;
    if (!confirmed) return;
    this.#known = confirmed;
    if (envelope) this.#confirmUnchanged(envelope, before, confirmed);
    if (confirmed === before) return;
    for (const request of before?.inputRequests ?? []) {
      if (!openRequest(confirmed, request.id)) this.#close(request, envelope);
    }
    for (const request of confirmed.inputRequests ?? []) {
      const earlier = openRequest(before, request.id);
      if (earlier !== request) this.#compare(earlier, request, envelope);
    }
  }

  /**
   * Our own answer came back and made no difference, so that comparing would not find it.
   *
   * @param {ActionEnvelope} envelope
   * @param {SessionState | undefined} before
   * @param {SessionState} after
   */
  #confirmUnchanged(envelope, before, after) {
    const { action } = envelope;
    const seq = this.#ownSeq(envelope);
    if (seq === undefined || action.type !== "session/inputAnswerChanged") return;
    const { requestId, questionId } = action;
    const answer = answerTo(openRequest(after, requestId), questionId);
    if (same(answerTo(openRequest(before, requestId), questionId), answer)) {
      this.#fields.get(keyOf(requestId, questionId))?.received(answer, seq);
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
        field.received(answer, this.#ownSeq(envelope));
      } else if (!envelope) field.received(answer);
    }
  }

  /** @param {InputRequest} request @param {ActionEnvelope | undefined} envelope */
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
      this.#fields.delete(keyOf(field.requestId, field.questionId));
      return [field.questionId, field.close(outcome(request, completed, field.questionId))];
    });
    closing.unsent = Object.fromEntries(unsent.filter(([, value]) => value));
    this.emit("closed", closing);
  }

  /**
   * What was answered here before, and with the completion if that was ours.
   *
   * @param {InputRequest} request
   * @param {InputCompleted | undefined} completed
   * @param {boolean} isOurs
   */
  #ownAnswers(request, completed, isOurs) {
    const included = Object.keys(completed?.answers ?? {});
    const before = this.fieldsOf(request.id).filter((field) => field.isOwn && field.by);
    const given = before.map((field) => field.questionId).filter((id) => !included.includes(id));
    return isOurs ? [...given, ...included] : given;
  }

  /** @param {Closing} closing */
  #remember(closing) {
    this.closings.delete(closing.request.id);
    this.closings.set(closing.request.id, closing);
    const [oldest] = this.closings.keys();
    if (this.closings.size > CLOSINGS && oldest !== undefined) this.closings.delete(oldest);
  }

  /** @param {ActionEnvelope | undefined} envelope @returns {number | undefined} */
  #ownSeq(envelope) {
    const origin = envelope?.origin;
    return origin?.clientId === this.#mirror.clientId ? origin?.clientSeq : undefined;
  }
}

/** @param {string} requestId @param {string} questionId */
const keyOf = (requestId, questionId) => JSON.stringify([requestId, questionId]);

/**
 * The request with the answers of its completion, without drafts.
 *
 * @param {InputRequest} request
 * @param {InputCompleted | undefined} completed
 * @returns {InputRequest}
 */
function answered(request, completed) {
  const included = Object.entries(completed?.answers ?? {}).filter(
    ([, answer]) => answer.state !== "draft",
  );
  if (included.length === 0) return request;
  return { ...request, answers: { ...request.answers, ...Object.fromEntries(included) } };
}

/**
 * What was accepted as the answer to a question, if anything.
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
