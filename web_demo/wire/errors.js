/**
 * What can go wrong, in one error with a code that says what.
 *
 * lost           the connection broke while a command was under way; it may have been done
 * gaveUp         the host will not have us; trying again does not help by itself
 * turnedAway     the host does not take our token, or wants one
 * closed         left by our own side
 * command        the host answered a command with an error; `rpcCode` is its number
 * notFound       there is no such session, or it is not for us
 * exists         the session's URI is taken
 * gone           the session was disposed of while it was watched
 * rejected       the host refused an action; `refusal` is its own code, `questionId` the culprit
 * requestClosed  the question is no longer open; `by` is who closed it, where known
 * unconfirmed    it was sent, and nobody can say any more whether it counted
 * takenBack      undone by whoever did it, before it was sent
 * tooMany        too many actions wait to be confirmed; this one was not taken
 * tooLarge       an action larger than a frame may be; it was not taken
 */

/**
 * @typedef {"lost" | "gaveUp" | "turnedAway" | "closed" | "command" | "notFound" | "exists" | "gone" | "rejected"
 *   | "requestClosed" | "unconfirmed" | "takenBack" | "tooMany" | "tooLarge"} WireErrorCode
 */

/** @import {Action, Author, RpcError} from "./types.d.ts" */

const CAN_RETRY = new Set(["lost", "tooMany"]);
const OF_RPC = new Map(
  /** @type {[number, WireErrorCode][]} */ ([
    [-32001, "notFound"],
    [-32003, "exists"],
  ]),
);

export class WireError extends Error {
  /** @type {Author | undefined} */ by;
  /** @type {number | undefined} */ rpcCode;
  /** @type {string | undefined} */ refusal;
  /** @type {string | undefined} */ questionId;
  /** @type {Action | undefined} */ action;

  /**
   * @param {WireErrorCode} code
   * @param {string} message
   * @param {Partial<Pick<WireError, "by" | "rpcCode" | "refusal" | "questionId" | "action">>} [about]
   */
  constructor(code, message, about = {}) {
    super(message);
    this.name = "WireError";
    this.code = code;
    Object.assign(this, about);
  }

  get canRetry() {
    return CAN_RETRY.has(this.code);
  }
}

/** @param {RpcError} error */
export const commandFailed = (error) =>
  new WireError(OF_RPC.get(error.code) ?? "command", error.message, { rpcCode: error.code });
