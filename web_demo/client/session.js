/** One session as views use it: its state, the fields of its questions, presence, and actions. */

/** @import { DraftField } from "./drafts/draft-field.js" */
/** @import { Change, Mirror } from "./mirror.js" */
/** @import { Protocol } from "./connection/protocol.js" */
/** @import { BrowserStorage } from "./storage.js" */
/** @import { Tab } from "./tab-identity.js" */
/**
 * @import {
 *   Action, ActionEnvelope, Answer, Present, ResponseKind, SessionState,
 * } from "./types.d.ts"
 */
import { ClientError } from "./errors.js";
import { Events } from "./events.js";
import { Outbox } from "./outbox.js";
import { Presence, presenceChannelOf, TypingIndicator } from "./presence.js";
import { Questions } from "./questions.js";
import { openRequest } from "./reducers/input-requests.js";
import { withoutUndefined } from "./reducers/updates.js";
import { reviewed } from "./review.js";
import { isArchived, isRead } from "./session-list.js";
import { newId } from "./tab-identity.js";

/** @typedef {import("./questions.js").Closing} Closing */
/** @typedef {"loading" | "open" | "gone"} SessionPhase */

/** The host's code for a completion that was reviewed on an older state. */
export const REVIEW_CHANGED = "reviewChanged";

/**
 * What sessions of a host share.
 *
 * @typedef {{ protocol: Protocol, tab: Tab, storage: BrowserStorage, name?: string }} Services
 */

/**
 * @extends {Events<{
 *   change: Change<SessionState>, presence: readonly Present[], closed: Closing, field: DraftField,
 *   rejected: { action: Action, reason: string, refusal?: string }, gone: ClientError,
 *   phase: SessionPhase, progress: undefined,
 * }>}
 */
export class Session extends Events {
  /** @type {ClientError | undefined} */ error;
  /** @type {() => void} set by the host that opened it */ onClose = () => {};
  #typing = new TypingIndicator();
  /** @type {() => void} */ #isReady = () => {};
  #services;
  /** @type {Mirror<SessionState>} */ #mirror;
  #outbox;
  #questions;
  /** @type {Presence | undefined} */ #presence;
  #stops;

  /** @param {string} uri @param {Services} services */
  constructor(uri, services) {
    super();
    this.uri = uri;
    /** Resolves when unsent work has been restored, or the session does not exist. */
    this.ready = new Promise((/** @type {(value: void) => void} */ done) => {
      this.#isReady = done;
    });
    this.#services = services;
    const { protocol, tab, storage } = services;
    this.#mirror = protocol.subscriptions.watch(uri);
    this.#outbox = new Outbox(protocol.subscriptions, this.#mirror, tab, storage);
    const shared = { protocol, outbox: this.#outbox, storage, typing: this.#typing };
    this.#questions = new Questions(this.#mirror, shared);
    const channel = presenceChannelOf(uri);
    if (channel) this.#presence = new Presence(protocol, channel, services.name);
    this.#stops = this.#listen(protocol);
    if (this.confirmed) this.#begin();
  }

  /** @param {Protocol} protocol */
  #listen(protocol) {
    this.#questions.on("closed", (closing) => this.emit("closed", closing));
    this.#questions.on("field", (field) => {
      this.emit("field", field);
      this.#emitProgress();
    });
    this.#presence?.on("change", (everybody) => this.emit("presence", everybody));
    this.#typing.on("change", (place) => this.#presence?.setEditing(place));
    this.#mirror.on("change", (change) => this.#follow(change));
    this.#mirror.on("end", (error) => this.#end(error));
    return [protocol.on("live", () => this.#questions.reconnected())];
  }

  // State

  /** @returns {SessionPhase} */
  get phase() {
    if (this.error) return "gone";
    return this.confirmed ? "open" : "loading";
  }

  /** What to show: the confirmed state with our own unconfirmed actions on top. */
  get state() {
    return this.#mirror.state;
  }

  get confirmed() {
    return this.#mirror.confirmed;
  }

  get pending() {
    return this.#mirror.pending;
  }

  /** Everybody in this session, ourselves included. */
  get presence() {
    return this.#presence?.present ?? [];
  }

  get others() {
    return this.presence.filter(({ clientId }) => clientId !== this.#mirror.clientId);
  }

  /** @returns {ReadonlyMap<string, Closing>} */
  get closings() {
    return this.#questions.closings;
  }

  /** How many of our own edits the host has not confirmed. */
  get waiting() {
    return this.#outbox.waiting + this.#questions.waiting;
  }

  // Questions

  /** @param {string} requestId @param {string} questionId */
  field(requestId, questionId) {
    return this.#questions.field(requestId, questionId);
  }

  /**
   * Closes the request for everybody. The host refuses to accept it if anything else would be sent
   * than is shown here now.
   *
   * @param {string} requestId
   * @param {ResponseKind} response
   * @param {Record<string, Answer>} [answers]
   * @returns {Promise<ActionEnvelope>}
   */
  complete(requestId, response, answers = {}) {
    const request = response === "accept" ? openRequest(this.state, requestId) : undefined;
    const action = withoutUndefined({
      type: /** @type {const} */ ("session/inputCompleted"),
      requestId,
      response,
      answers: Object.keys(answers).length ? answers : undefined,
      _meta: request && { reviewed: reviewed(request, answers) },
    });
    return this.dispatch(action);
  }

  /** Completed here and not confirmed yet: waiting for a connection, or being sent. */
  get completions() {
    return this.#outbox.completions;
  }

  /**
   * Reopens a request that was completed here and never sent.
   *
   * @param {string} requestId
   * @returns {boolean} whether that was still possible
   */
  withdraw(requestId) {
    return this.#outbox.withdraw(requestId);
  }

  // Actions

  /**
   * Refusals are also events, so this need not be awaited.
   *
   * @param {Action} action
   * @returns {Promise<ActionEnvelope>}
   */
  dispatch(action) {
    const done = this.#dispatch(action);
    done.catch(() => {});
    return done;
  }

  /** @param {Action} action */
  async #dispatch(action) {
    try {
      return await this.#outbox.dispatch(action);
    } catch (error) {
      throw this.#withDetails(/** @type {ClientError} */ (error), action);
    } finally {
      this.#emitProgress();
    }
  }

  /**
   * @param {string} text
   * @returns {Promise<string>} the id of the turn
   */
  async startTurn(text) {
    const turnId = newId();
    const message = { text, origin: { kind: "user" } };
    await this.dispatch({ type: "session/turnStarted", turnId, message });
    return turnId;
  }

  /** @param {string} text - for the next turn */
  queueMessage(text) {
    const message = { text, origin: { kind: "user" } };
    return this.dispatch({ type: "session/pendingMessageSet", kind: "queued", id: newId(), message });
  }

  async cancelTurn() {
    const turnId = this.state?.activeTurn?.id;
    if (turnId) await this.dispatch({ type: "session/turnCancelled", turnId });
  }

  /**
   * @param {string} turnId
   * @param {string} toolCallId
   * @param {{ approved: boolean, optionId?: string, editedToolInput?: string }} decision
   */
  confirmToolCall(turnId, toolCallId, { approved, optionId, editedToolInput }) {
    const action = withoutUndefined({
      type: /** @type {const} */ ("session/toolCallConfirmed"),
      turnId,
      toolCallId,
      approved,
      confirmed: approved ? /** @type {const} */ ("user-action") : undefined,
      reason: approved ? undefined : /** @type {const} */ ("denied"),
      editedToolInput: approved ? editedToolInput : undefined,
      selectedOptionId: optionId,
    });
    return this.dispatch(action);
  }

  /** @param {string} turnId @param {string} toolCallId @param {boolean} approved */
  confirmToolResult(turnId, toolCallId, approved) {
    const type = "session/toolCallResultConfirmed";
    return this.dispatch({ type, turnId, toolCallId, approved });
  }

  /** @returns {Promise<unknown>} */
  markRead(isNow = true) {
    if (!this.state || isRead(this.state.summary.status) === isNow) return Promise.resolve();
    return this.dispatch({ type: "session/isReadChanged", isRead: isNow });
  }

  /** @returns {Promise<unknown>} */
  archive(isNow = true) {
    if (!this.state || isArchived(this.state.summary.status) === isNow) return Promise.resolve();
    return this.dispatch({ type: "session/isArchivedChanged", isArchived: isNow });
  }

  /** @param {string} title @returns {Promise<unknown>} */
  rename(title) {
    return this.dispatch({ type: "session/titleChanged", title });
  }

  // Presence

  /** Reports that we stopped typing. Where we type is reported by the fields, and times out by itself. */
  stopTyping() {
    this.#typing.at(undefined);
  }

  /** @param {boolean} isIdle - the page is hidden, so no one types */
  idle(isIdle) {
    if (isIdle) this.stopTyping();
    this.#presence?.setIdle(isIdle);
  }

  /** @param {string | undefined} name */
  setName(name) {
    this.#presence?.setName(name);
  }

  // Lifecycle

  close() {
    this.onClose();
  }

  /** Sends and saves everything; the page may be gone the next moment. */
  flush() {
    this.#questions.flush();
  }

  /** The stored actions are those of another token now. */
  restoreActions() {
    this.#outbox.restore();
  }

  /** Leaves for good; what is not confirmed stays in storage. */
  leave() {
    this.flush();
    this.#typing.close();
    for (const stop of this.#stops) stop();
    this.#presence?.close();
    this.#services.protocol.subscriptions.unwatch(this.uri);
  }

  #begin() {
    this.#questions.restore((tab) => tab === this.#services.tab.id);
    this.emit("phase", this.phase);
    void this.#adopt();
  }

  /** Sends what closed tabs had not sent. */
  async #adopt() {
    const open = await this.#services.tab.others;
    if (this.phase !== "open") return;
    this.#questions.restore((tab) => tab !== this.#services.tab.id && !open.has(tab));
    this.#outbox.adopt(open);
    this.#isReady();
    this.#emitProgress();
  }

  /** @param {Change<SessionState>} change */
  #follow(change) {
    if (change.before === undefined && change.after !== undefined) this.#begin();
    this.emit("change", change);
    if (change.cause === "rejected" && change.action && change.reason) {
      const { action, reason, refusal } = change;
      this.emit("rejected", { action, reason, refusal });
    }
    this.#emitProgress();
  }

  /** @param {ClientError} error */
  #end(error) {
    this.error = error;
    this.#isReady();
    if (error.code !== "closed") this.#services.storage.forget(this.uri);
    this.emit("phase", this.phase);
    if (error.code !== "closed") this.emit("gone", error);
    this.#emitProgress();
  }

  /** Something was edited, sent, confirmed or refused here: `waiting` may differ. */
  #emitProgress() {
    this.emit("progress", undefined);
  }

  /**
   * A refusal with details; the field that caused it shows it too.
   *
   * @param {ClientError} error
   * @param {Action} action
   */
  #withDetails(error, action) {
    if (error.code !== "rejected" || action.type !== "session/inputCompleted") return error;
    const { requestId } = action;
    if (!openRequest(this.confirmed, requestId)) return new ClientError("requestClosed", error.message);
    const { questionId, refusal, message } = error;
    if (questionId && refusal !== REVIEW_CHANGED) this.field(requestId, questionId).refuse(message);
    return error;
  }
}
