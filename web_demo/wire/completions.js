/**
 * Forms that were closed here and of which the host has not said yet that they are: what was
 * answered may still wait for a connection.
 */

/** @import {Answer, InputCompleted, InputRequest, ResponseKind, Reviewed} from "./types.d.ts" */
/** @import {AnyMirror} from "./channels.js" */
/** @import {Pending} from "./mirror.js" */
/** @import {Protocol} from "./protocol.js" */
import { Events } from "./events.js";
import { openRequest } from "./reducers/requests.js";
import { present, same } from "./reducers/updates.js";

/**
 * `request` is as the host has it; `isSent`: it is on its way, and otherwise waits; `mayBeThere`:
 * it was sent once, so the host may have it.
 *
 * @typedef {{
 *   request: InputRequest | undefined, requestId: string, response: ResponseKind,
 *   answers: Record<string, Answer>, at: number, isSent: boolean, mayBeThere: boolean,
 * }} Completion
 */

/** @extends {Events<{ change: readonly Completion[] }>} */
export class Completions extends Events {
  #mirror;
  #protocol;
  /** @type {readonly Completion[]} */ #told = [];
  #stops;

  /**
   * @param {AnyMirror} mirror
   * @param {Protocol} protocol
   */
  constructor(mirror, protocol) {
    super();
    this.#mirror = mirror;
    this.#protocol = protocol;
    const look = () => this.#look();
    mirror.on("change", look);
    this.#stops = [protocol.on("live", look), protocol.on("lost", look)];
  }

  close() {
    for (const stop of this.#stops) stop();
  }

  /** @returns {readonly Completion[]} in the order in which they were made */
  get list() {
    return this.#pending.map(({ pending, action }) => this.#seen(pending, action));
  }

  /**
   * @param {string} requestId
   * @returns {Completion | undefined}
   */
  of(requestId) {
    return this.list.find((each) => each.requestId === requestId);
  }

  /**
   * Undoes one that has never left.
   *
   * @param {string} requestId
   * @returns {boolean} whether it could
   */
  takeBack(requestId) {
    const found = this.#pending.find(({ action }) => action.requestId === requestId);
    if (!found || found.pending.isSent) return false;
    this.#mirror.takeBack(found.pending);
    return true;
  }

  get #pending() {
    return this.#mirror.pending.flatMap((pending) => {
      const { action } = pending;
      return action.type === "session/inputCompleted" ? [{ pending, action }] : [];
    });
  }

  /**
   * @param {Pending} pending
   * @param {InputCompleted} action
   * @returns {Completion}
   */
  #seen({ isSent, at }, { requestId, response, answers = {} }) {
    return {
      request: openRequest(this.#mirror.confirmed, requestId),
      requestId,
      response,
      answers,
      at,
      mayBeThere: isSent,
      isSent: isSent && this.#protocol.isLive && this.#mirror.confirmed !== undefined,
    };
  }

  #look() {
    const { list } = this;
    if (same(list, this.#told)) return;
    this.#told = list;
    this.emit("change", list);
  }
}

/**
 * @param {string} requestId
 * @param {ResponseKind} response
 * @param {Record<string, Answer>} answers
 * @param {Reviewed} [reviewed]
 * @returns {InputCompleted}
 */
export const completionOf = (requestId, response, answers, reviewed) =>
  present({
    type: /** @type {const} */ ("session/inputCompleted"),
    requestId,
    response,
    answers: Object.keys(answers).length ? answers : undefined,
    _meta: reviewed && { reviewed },
  });
