/**
 * One session as views hold it: its state, its questions' fields, who is here, and what to do.
 */

/**
 * @import {
 *   Action, ActionEnvelope, Answer, Present, ResponseKind, SessionState,
 * } from "./types.d.ts"
 */
/** @import {Field} from "./drafts.js" */
/** @import {Kept} from "./kept.js" */
/** @import {ToolCallDecision} from "./decisions.js" */
/** @import {Change, Mirror} from "./mirror.js" */
/** @import {Protocol} from "./protocol.js" */
/** @import {Tab} from "./tab.js" */
import { Answering } from "./answering.js";
import { completionOf, Completions } from "./completions.js";
import { toolCallConfirmed } from "./decisions.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { newId } from "./ids.js";
import { Outbox } from "./outbox.js";
import { Presence, roomOf } from "./presence.js";
import { openRequest } from "./reducers/requests.js";
import { reviewed } from "./review.js";
import { isArchived, isRead } from "./status.js";
import { Writing } from "./writing.js";

/** @typedef {import("./answering.js").Closing} Closing */
/** @typedef {import("./completions.js").Completion} Completion */
/** @typedef {"loading" | "open" | "gone"} SessionPhase */

/** The code of the refusal of a completion that was reviewed on an older state. */
export const REVIEW_CHANGED = "reviewChanged";

/**
 * What a session stands on.
 *
 * @typedef {{ protocol: Protocol, tab: Tab, kept: Kept, name?: string }} Ground
 */

/**
 * @extends {Events<{
 *   change: Change<SessionState>, presence: readonly Present[], closed: Closing, field: Field,
 *   rejected: { action: Action, reason: string, refusal?: string }, gone: WireError,
 *   phase: SessionPhase, settled: undefined, completions: readonly Completion[],
 * }>}
 */
export class Session extends Events {
  /** @type {WireError | undefined} */ error;
  /** @type {() => void} what leaving means is for whoever opened it to say */ onClose = () => {};
  #writing = new Writing();
  /** @type {() => void} */ #isReady = () => {};
  #ground;
  /** @type {Mirror<SessionState>} */ #mirror;
  #outbox;
  #answering;
  #completions;
  /** @type {Presence | undefined} */ #presence;
  #stops;

  /**
   * @param {string} uri
   * @param {Ground} ground
   */
  constructor(uri, ground) {
    super();
    this.uri = uri;
    /** Until what was left unsent has been taken up, or the session is not there. */
    this.ready = new Promise((/** @type {(value: void) => void} */ done) => {
      this.#isReady = done;
    });
    this.#ground = ground;
    const { protocol, tab, kept } = ground;
    this.#mirror = protocol.channels.watch(uri);
    this.#outbox = new Outbox(protocol.channels, this.#mirror, tab, kept);
    this.#answering = this.#questions();
    this.#completions = new Completions(this.#mirror, protocol);
    this.#completions.on("change", (list) => this.emit("completions", list));
    const room = roomOf(uri);
    if (room) this.#presence = new Presence(protocol, room, ground.name);
    this.#presence?.on("change", (everybody) => this.emit("presence", everybody));
    this.#writing.on("change", (place) => this.#presence?.edits(place));
    this.#writing.on("paused", (place) => this.#answering.paused(place));
    this.#mirror.on("change", (change) => this.#follow(change));
    this.#mirror.on("end", (error) => this.#end(error));
    this.#stops = [protocol.on("live", () => this.#answering.live())];
    if (this.confirmed) this.#begin();
  }

  #questions() {
    const { protocol, kept } = this.#ground;
    const answering = new Answering(this.#mirror, {
      uri: this.uri,
      kept,
      isLive: () => protocol.isLive,
      isWriting: (field) => this.#writing.isAt(field),
      typing: (field) => this.editing(field.requestId, field.questionId),
      send: (action, failed) => this.#outbox.send(action, failed),
    });
    answering.on("closed", (closing) => this.emit("closed", closing));
    answering.on("field", (field) => {
      this.emit("field", field);
      this.#tellSettled();
    });
    return answering;
  }

  // What there is to see

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

  /** Everybody who looks at this session, ourselves included. */
  get presence() {
    return this.#presence?.present ?? [];
  }

  get others() {
    return this.presence.filter(({ clientId }) => clientId !== this.#mirror.clientId);
  }

  /** @returns {ReadonlyMap<string, Closing>} */
  get closings() {
    return this.#answering.closings;
  }

  /** How many of our own edits the host has not confirmed. */
  get waiting() {
    return this.#outbox.waiting + this.#answering.waiting;
  }

  // Questions

  /**
   * @param {string} requestId
   * @param {string} questionId
   */
  field(requestId, questionId) {
    return this.#answering.field(requestId, questionId);
  }

  /**
   * What accepting would submit.
   *
   * @param {string} requestId
   */
  answers(requestId) {
    return this.#answering.answers(requestId);
  }

  /**
   * Closes the request for everybody. Accepting is refused if anything else would be sent than
   * would be by what is shown here now.
   *
   * @param {string} requestId
   * @param {ResponseKind} response
   * @param {Record<string, Answer>} [answers]
   * @returns {Promise<ActionEnvelope>}
   */
  complete(requestId, response, answers) {
    const given = answers ?? (response === "accept" ? this.answers(requestId) : {});
    const request = response === "accept" ? openRequest(this.state, requestId) : undefined;
    const seen = request && reviewed(request, given);
    return this.dispatch(completionOf(requestId, response, given, seen));
  }

  /** Closed here, and not confirmed by the host: queued for a connection, or on its way. */
  get completions() {
    return this.#completions.list;
  }

  /** @param {string} requestId */
  completing(requestId) {
    return this.#completions.of(requestId);
  }

  /**
   * Opens a request again that was closed here and has never been sent.
   *
   * @param {string} requestId
   * @returns {boolean} whether that was still possible
   */
  takeBack(requestId) {
    return this.#completions.takeBack(requestId);
  }

  // Doing

  /**
   * Refusals are told by events too, so nobody has to wait for this.
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
      throw this.#explained(/** @type {WireError} */ (error), action);
    } finally {
      this.#tellSettled();
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

  /** @param {string} [turnId] */
  async cancelTurn(turnId = this.state?.activeTurn?.id) {
    if (turnId) await this.dispatch({ type: "session/turnCancelled", turnId });
  }

  /**
   * @param {string} turnId
   * @param {string} toolCallId
   * @param {ToolCallDecision} decision
   */
  confirmToolCall(turnId, toolCallId, decision) {
    return this.dispatch(toolCallConfirmed(turnId, toolCallId, decision));
  }

  /**
   * @param {string} turnId
   * @param {string} toolCallId
   * @param {boolean} approved
   */
  confirmToolResult(turnId, toolCallId, approved) {
    return this.dispatch({
      type: "session/toolCallResultConfirmed",
      turnId,
      toolCallId,
      approved,
    });
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

  /**
   * @param {string} title
   * @returns {Promise<unknown>}
   */
  rename(title) {
    return this.dispatch({ type: "session/titleChanged", title });
  }

  // Presence

  /**
   * Where we type, or that we no longer do; it fades when nothing more is typed.
   *
   * @param {string} [requestId]
   * @param {string} [questionId]
   */
  editing(requestId, questionId) {
    const isSomewhere = requestId !== undefined && questionId !== undefined;
    this.#writing.goTo(isSomewhere ? { requestId, questionId } : undefined);
  }

  /** @param {boolean} isIdle - nobody looks, and so nobody writes */
  idle(isIdle) {
    if (isIdle) this.editing();
    this.#presence?.idles(isIdle);
  }

  /** @param {string | undefined} name */
  called(name) {
    this.#presence?.isCalled(name);
  }

  // Coming and going

  close() {
    this.onClose();
  }

  /** Sends and keeps all that is left; the page may be gone the next moment. */
  flush() {
    this.#answering.flush();
  }

  /** What is kept is that of another credential now. */
  recall() {
    this.#outbox.recall();
  }

  /** Leaves for good; what is not confirmed stays kept. */
  leave() {
    this.flush();
    this.#writing.stop();
    for (const stop of this.#stops) stop();
    this.#completions.close();
    this.#presence?.close();
    this.#ground.protocol.channels.unwatch(this.uri);
  }

  #begin() {
    this.#answering.restore((tab) => tab === this.#ground.tab.id);
    this.emit("phase", this.phase);
    void this.#adopt();
  }

  /** What tabs that are gone had not sent is sent here. */
  async #adopt() {
    const open = await this.#ground.tab.others;
    if (this.phase !== "open") return;
    this.#answering.restore((tab) => tab !== this.#ground.tab.id && !open.has(tab));
    this.#outbox.adopt(open);
    this.#isReady();
    this.#tellSettled();
  }

  /** @param {Change<SessionState>} change */
  #follow(change) {
    if (change.before === undefined && change.after !== undefined) this.#begin();
    this.emit("change", change);
    if (change.cause === "rejected" && change.action && change.reason) {
      const { action, reason, refusal } = change;
      this.emit("rejected", { action, reason, refusal });
    }
    this.#tellSettled();
  }

  /** @param {WireError} error */
  #end(error) {
    this.error = error;
    this.#isReady();
    if (error.code !== "closed") this.#ground.kept.forget(this.uri);
    this.emit("phase", this.phase);
    if (error.code !== "closed") this.emit("gone", error);
    this.#tellSettled();
  }

  #tellSettled() {
    this.emit("settled", undefined);
  }

  /**
   * A refusal, with what else is known of it; the field that is to blame shows it too.
   *
   * @param {WireError} error
   * @param {Action} action
   */
  #explained(error, action) {
    if (error.code !== "rejected" || action.type !== "session/inputCompleted") return error;
    const { requestId } = action;
    if (!openRequest(this.confirmed, requestId)) {
      const by = this.closings.get(requestId)?.by;
      return new WireError("requestClosed", error.message, { by, action });
    }
    if (error.questionId && error.refusal !== REVIEW_CHANGED) this.field(requestId, error.questionId).refuse(error.message);
    return error;
  }
}
