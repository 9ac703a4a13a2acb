// What the person at this page may do here, and the words for what they may not. The host decides;
// this only keeps people from trying in vain.

/** @import { Role } from "../wire/types.d.ts" */

/**
 * `why` is said once, above the session; controls that are off point to it.
 * @typedef {{ role: Role | undefined, mayAnswer: boolean, mayDirect: boolean, isRecording: boolean, why: string }} Access
 */

/** Where `why` stands. */
export const WHY_ID = "why";

/** @type {Readonly<Record<string, string>>} */
const WHY = {
  observer: "You are watching. You cannot answer or change anything here.",
  answerer: "You can answer the questions here. The rest is the owner’s.",
  agent: "You are connected as an agent, which cannot answer questions.",
};
const RECORDED = "This is a recording. It can be watched, and nothing in it can be changed.";

/**
 * @param {Role | undefined} role unknown until the host has told
 * @param {boolean} isRecording
 * @returns {Access}
 */
export function accessOf(role, isRecording) {
  if (isRecording) return { role, mayAnswer: false, mayDirect: false, isRecording, why: RECORDED };
  return {
    role,
    isRecording,
    mayAnswer: role === undefined || role === "owner" || role === "answerer",
    mayDirect: role === undefined || role === "owner",
    why: WHY[role ?? ""] ?? "",
  };
}
