// Sessions that were played back from a file: to be watched, and nobody's to answer.

/** @import { SessionState, SessionSummary } from "../wire/types.d.ts" */

const PROJECT = "session-server:recordings";

/** @param {SessionState | undefined} state */
export function isRecording(state) {
  return state?._meta?.["recording"] === true;
}

/** @param {SessionSummary} summary as a list has it */
export function isRecorded(summary) {
  return summary.project?.uri === PROJECT;
}
