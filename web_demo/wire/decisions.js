/**
 * What a person decides about a tool call, as an action.
 */

/** @import {Action, Markdown} from "./types.d.ts" */
import { present } from "./reducers/updates.js";

/**
 * @typedef {{
 *   approved: boolean, optionId?: string, editedToolInput?: string, reason?: string | Markdown,
 * }} ToolCallDecision
 */

/**
 * @param {string} turnId
 * @param {string} toolCallId
 * @param {ToolCallDecision} decision
 * @returns {Action}
 */
export const toolCallConfirmed = (
  turnId,
  toolCallId,
  { approved, optionId, editedToolInput, reason },
) =>
  present({
    type: /** @type {const} */ ("session/toolCallConfirmed"),
    turnId,
    toolCallId,
    approved,
    confirmed: approved ? /** @type {const} */ ("user-action") : undefined,
    reason: approved ? undefined : /** @type {const} */ ("denied"),
    reasonMessage: approved ? undefined : reason,
    editedToolInput: approved ? editedToolInput : undefined,
    selectedOptionId: optionId,
  });
