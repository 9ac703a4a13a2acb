// What the person at this page may do here, and the words for what they may not. The host decides;
// this only keeps people from trying in vain.

/** @import { Role } from "../wire/types.d.ts" */

/** @typedef {{ role: Role | undefined, mayAnswer: boolean, mayDirect: boolean, why: string }} Access */

/** @type {Readonly<Record<string, string>>} */
const WHY = {
  observer: "You are watching. This link lets you see the session, but not answer or change it.",
  answerer:
    "You can answer the questions here. Starting turns and letting tools run is the owner’s.",
  agent: "You are connected as an agent, which cannot answer questions.",
};

/**
 * @param {Role | undefined} role unknown until the host has told
 * @returns {Access}
 */
export function accessOf(role) {
  return {
    role,
    mayAnswer: role === undefined || role === "owner" || role === "answerer",
    mayDirect: role === undefined || role === "owner",
    why: WHY[role ?? ""] ?? "",
  };
}
