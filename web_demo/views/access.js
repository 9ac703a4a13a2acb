// What the viewer may do, in a session and on the host. The host decides; this only disables what
// it would refuse.

/** @import { Host } from "../client/host.js" */
/** @import { Role } from "../client/types.d.ts" */
import { Events } from "../client/events.js";

/**
 * `why` is shown once, above the session; disabled controls refer to it.
 * @typedef {{
 *   role: Role | undefined, mayAnswer: boolean, mayDirect: boolean, isRecording: boolean, why: string,
 * }} Access
 */

/** The id of the element that shows `why`. */
export const WHY_ID = "why";

/** @type {Readonly<Record<string, string>>} */
const WHY = {
  observer: "You can view this session, but not answer or change anything.",
  answerer: "You can answer questions. Only the owner can change anything else.",
  agent: "You are connected as an agent, which cannot answer questions.",
};
const RECORDED = "This is a recording. You can view it, but not change it.";

/**
 * @param {Role | undefined} role `undefined` until the host has answered
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

// The viewer's own access to the host: their role, and until when. Within a session presence has it
// too; outside of one, `GET /v1/me` has to be asked.

/** @typedef {{ role: Role, sessions?: readonly string[] | null, expiresAt?: number | null }} Principal */

/** @extends {Events<{ change: undefined }>} */
export class Viewer extends Events {
  /** @type {Principal | undefined} */
  known = undefined;
  /** @type {string | undefined} */
  #asked = undefined;

  /** @param {Host} host */
  constructor(host) {
    super();
    this.host = host;
    host.on("status", ({ phase }) => {
      if (phase === "live") void this.#ask();
      if (phase === "closed") this.#asked = undefined;
    });
  }

  /** @returns {Role | undefined} `undefined` until the host has answered */
  get role() {
    return this.known?.role;
  }

  /** A guest of one session may not create others; without a token, everything is allowed. */
  get mayCreate() {
    if (this.known === undefined) return this.host.token === undefined;
    return this.role === "owner" && !this.known.sessions;
  }

  /** Once for each token. */
  async #ask() {
    const key = this.host.token ?? "";
    if (this.#asked === key) return;
    this.#asked = key;
    this.known = undefined;
    try {
      const who = await this.host.request("v1/me");
      if (this.#asked !== key) return;
      this.known = who;
      this.emit("change", undefined);
    } catch {
      this.#asked = undefined; // asked again on the next connection
    }
  }
}
