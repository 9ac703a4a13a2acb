/** The live list of a host's sessions, and what a session's status means. */

/** @import { Protocol } from "./connection/protocol.js" */
/** @import { SessionState, SessionSummary, SummaryChanges } from "./types.d.ts" */
import { Events } from "./events.js";
import {
  activityBits,
  ERROR,
  hasMark,
  IN_PROGRESS,
  INPUT_NEEDED,
  IS_ARCHIVED,
  IS_READ,
  updated,
} from "./reducers/updates.js";
import { ROOT } from "./connection/subscriptions.js";

/** @typedef {{ session: string, summary?: SessionSummary, before?: SessionSummary }} Listed */

/** @extends {Events<{ change: readonly SessionSummary[], summary: Listed }>} */
export class Sessions extends Events {
  /** @type {readonly SessionSummary[] | undefined} */ list;
  /** @type {Map<string, SessionSummary>} */ #byUri = new Map();
  #protocol;

  /** @param {Protocol} protocol */
  constructor(protocol) {
    super();
    this.#protocol = protocol;
    protocol.on("live", () => this.#fetch());
    protocol.on("added", (summary) => this.#put(summary.resource, summary));
    protocol.on("removed", (session) => this.#put(session, undefined));
    protocol.on("summary", ({ session, changes }) => this.#change(session, changes));
  }

  /** Notifications are not replayed, so the list is fetched again after a reconnect. */
  #fetch() {
    this.#protocol.rpc.request("listSessions", { channel: ROOT }, {
      resolve: ({ items }) => this.#fill(items),
      reject: () => {}, // lost: it is fetched again on the next connection
    });
  }

  /** @param {readonly SessionSummary[]} items */
  #fill(items) {
    const before = this.#byUri;
    const isFirst = this.list === undefined;
    this.#byUri = new Map(
      items.map((item) => [item.resource, updated(before.get(item.resource) ?? item, item)]),
    );
    this.#listChanged();
    if (isFirst) return;
    for (const session of new Set([...before.keys(), ...this.#byUri.keys()])) {
      this.#emitSummary(session, this.#byUri.get(session), before.get(session));
    }
  }

  /** @param {string} session @param {SummaryChanges} changes */
  #change(session, changes) {
    const summary = this.#byUri.get(session);
    if (!summary) return;
    const activity = "activity" in changes ? { activity: changes.activity || undefined } : {};
    this.#put(session, updated(summary, { ...changes, ...activity }));
  }

  /** @param {string} session @param {SessionSummary | undefined} summary */
  #put(session, summary) {
    const before = this.#byUri.get(session);
    if (summary === before) return;
    if (summary) this.#byUri.set(session, summary);
    else this.#byUri.delete(session);
    if (this.list === undefined) return; // it is being fetched
    this.#listChanged();
    this.#emitSummary(session, summary, before);
  }

  #listChanged() {
    this.list = [...this.#byUri.values()];
    this.emit("change", this.list);
  }

  /**
   * @param {string} session
   * @param {SessionSummary | undefined} summary
   * @param {SessionSummary | undefined} before
   */
  #emitSummary(session, summary, before) {
    if (summary !== before) this.emit("summary", { session, summary, before });
  }
}

// The bits of a session's status.

/** @param {number} status */
export const isRead = (status) => hasMark(status, IS_READ);

/** @param {number} status */
export const isArchived = (status) => hasMark(status, IS_ARCHIVED);

/**
 * Not in the list. An archived session with open questions is: an asker may be waiting for the
 * answers.
 * @param {number} status
 */
export const isHidden = (status) => isArchived(status) && activityOf(status) !== "input-needed";

/**
 * Whether the askers of all open questions are gone.
 * @param {SessionSummary} summary
 */
export const isAbandoned = (summary) => summary._meta?.askersGone === true;

/** @param {number} status @returns {"idle" | "error" | "running" | "input-needed"} */
export function activityOf(status) {
  const bits = activityBits(status);
  if (bits >= INPUT_NEEDED) return "input-needed";
  if (bits >= IN_PROGRESS) return "running";
  return hasMark(bits, ERROR) ? "error" : "idle";
}

// Recordings: sessions that were replayed from a file, read-only.

/** The provider of sessions without an agent, which only collect answers. */
export const NO_AGENT = "people";
const PROJECT = "session-server:recordings";

/** @param {SessionState | undefined} state */
export function isRecording(state) {
  return state?._meta?.["recording"] === true;
}

/** @param {SessionSummary} summary as a list has it */
export function isRecorded(summary) {
  return summary.project?.uri === PROJECT;
}

// The order of sessions everywhere: the last modified first.

/** @param {readonly SessionSummary[]} sessions @returns {SessionSummary[]} */
export function latestFirst(sessions) {
  return sessions.toSorted(
    (a, b) => b.modifiedAt - a.modifiedAt || (a.resource < b.resource ? -1 : 1),
  );
}
