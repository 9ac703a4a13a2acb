/**
 * All errors of the client, distinguished by their code.
 *
 * lost           the connection broke during a command, which may have been executed
 * fatal          the host refuses this client; retrying does not help
 * unauthorized   the host needs a token, or refuses ours
 * closed         closed by this page
 * command        the host answered a command with an error; `rpcCode` is its number
 * notFound       there is no such session, or no access to it
 * exists         the session's URI is in use
 * gone           the session was removed while it was open
 * rejected       the host refused an action; `refusal` is its code, `questionId` the question
 * requestClosed  the question is no longer open; `by` is who closed it, where known
 * unconfirmed    it was sent, and it is unknown whether it was accepted
 * withdrawn      undone here before it was sent
 * tooMany        too many unconfirmed actions; this one was not sent
 * tooLarge       an action too large for a frame; it was not sent
 */

/** @import { Action, Author, RpcError } from "./types.d.ts" */

/**
 * @typedef {"lost" | "fatal" | "unauthorized" | "closed" | "command" | "notFound" | "exists" | "gone" | "rejected"
 *   | "requestClosed" | "unconfirmed" | "withdrawn" | "tooMany" | "tooLarge"} ClientErrorCode
 */

const OF_RPC = new Map(
  /** @type {[number, ClientErrorCode][]} */ ([
    [-32001, "notFound"],
    [-32003, "exists"],
  ]),
);

export class ClientError extends Error {
  /** @type {Author | undefined} */ by;
  /** @type {number | undefined} */ rpcCode;
  /** @type {string | undefined} */ refusal;
  /** @type {string | undefined} */ questionId;
  /** @type {Action | undefined} */ action;

  /**
   * @param {ClientErrorCode} code
   * @param {string} message
   * @param {Partial<Pick<ClientError, "by" | "rpcCode" | "refusal" | "questionId" | "action">>} [about]
   */
  constructor(code, message, about = {}) {
    super(message);
    this.name = "ClientError";
    this.code = code;
    Object.assign(this, about);
  }
}

/** @param {RpcError} error */
export const commandFailed = (error) =>
  new ClientError(OF_RPC.get(error.code) ?? "command", error.message, { rpcCode: error.code });
