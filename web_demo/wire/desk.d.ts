/**
 * What a field needs of its session.
 */

import type { Field } from "./drafts.js";
import type { WireError } from "./errors.js";
import type { Kept } from "./kept.js";
import type { Action, Question } from "./types.d.ts";

export interface Desk {
  uri: string;
  isLive: boolean;
  kept: Kept;
  isCompleting(requestId: string): boolean;
  question(requestId: string, questionId: string): Question | undefined;
  /** Whether somebody typed into it here a moment ago. */
  isWriting(field: Field): boolean;
  typing(field: Field): void;
  /** Gives the number of what was sent. */
  send(action: Action, failed: (error: WireError) => void): number;
  fieldChanged(field: Field): void;
}
