// Who the person at this page is to the host, beyond any one session: what their credential lets them
// do, and until when. Presence says it within a session; outside of one there is nobody else to ask.

/** @import { Host } from "../wire/host.js" */
/** @import { Role } from "../wire/types.d.ts" */
import { Events } from "../wire/events.js";

/** @typedef {{ role: Role, sessions?: readonly string[] | null, expiresAt?: number | null }} Principal */

/** @extends {Events<{ change: undefined }>} */
export class Self extends Events {
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

  /** @returns {Role | undefined} unknown until the host has told */
  get role() {
    return this.known?.role;
  }

  /** A guest of one session has no say over the host; who needs no token is at home. */
  get mayCreate() {
    if (this.known === undefined) return this.host.token === undefined;
    return this.role === "owner" && !this.known.sessions;
  }

  /** Once for each credential. */
  async #ask() {
    const { token } = this.host;
    const key = token ?? "";
    if (this.#asked === key) return;
    this.#asked = key;
    this.known = undefined;
    try {
      const answer = await fetch("v1/me", {
        headers: token ? { Authorization: `Bearer ${token}` } : {},
      });
      if (!answer.ok) throw new Error(answer.statusText);
      const who = await answer.json();
      if (this.#asked === key) this.#learn(who);
    } catch {
      this.#asked = undefined; // it is asked again on the next connection
    }
  }

  /** @param {Principal} who */
  #learn(who) {
    this.known = who;
    this.emit("change", undefined);
  }
}
