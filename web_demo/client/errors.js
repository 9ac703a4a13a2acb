/**
 * All errors of the client, distinguished by their code.
 *
 * lost           the connection broke during a command, which may have been executed
 * fatal          the host refuses this client; retrying does not help
 * unauthorized   the host needs a token, or refuses ours
 * closed         closed by this page
 * command        the host answered a command with an error; `rpcCode` is its number
 * notFound       there is no such session, or no access to it
 * gone           the session was removed while it was open
 * rejected       the host refused an action; `refusal` is its code, `questionId` the question
 * requestClosed  the question is no longer open
 * unconfirmed    it was sent, and it is unknown whether it was accepted
 * withdrawn      undone here before it was sent
 * tooMany        too many unconfirmed actions; this one was not sent
 * tooLarge       an action too large for a frame; it was not sent
 */

/** @import { RpcError } from "./types.d.ts" */

/**
 * @typedef {"lost" | "fatal" | "unauthorized" | "closed" | "command" | "notFound" | "gone" | "rejected"
 *   | "requestClosed" | "unconfirmed" | "withdrawn" | "tooMany" | "tooLarge"} ClientErrorCode
 */

const NOT_FOUND = -32001;

export class ClientError extends Error {
  /** @type {number | undefined} */ rpcCode;
  /** @type {string | undefined} */ refusal;
  /** @type {string | undefined} */ questionId;

  /**
   * @param {ClientErrorCode} code
   * @param {string} message
   * @param {Partial<Pick<ClientError, "rpcCode" | "refusal" | "questionId">>} [about]
   */
  constructor(code, message, about = {}) {
    super(message);
    this.name = "ClientError";
    this.code = code;
    Object.assign(this, about);
  }
}

/** @param {RpcError} error */
export const commandFailed = ({ code, message }) =>
  new ClientError(code === NOT_FOUND ? "notFound" : "command", message, { rpcCode: code });
