/**
 * What time it is at the host, where deadlines are kept; this machine's clock may be wrong.
 *
 * Everything that the host says of the time is a little old when it arrives. So of all that was said
 * on one connection, what puts its clock furthest ahead is nearest to the truth.
 */

export class HostClock {
  #ahead = 0;
  #isOld = true;

  /** @returns {number} milliseconds since the epoch */
  now() {
    return Date.now() + this.#ahead;
  }

  /** A connection is over: until the next time is told, the last one has to do. */
  lost() {
    this.#isOld = true;
  }

  /** @param {number | undefined} at - what the host's clock showed a moment ago */
  told(at) {
    if (at === undefined || !Number.isFinite(at)) return;
    const ahead = at - Date.now();
    this.#ahead = this.#isOld ? ahead : Math.max(this.#ahead, ahead);
    this.#isOld = false;
  }
}

/**
 * The time as the host's HTTP tells it, to the second. Live actions tell it better, but there may
 * be none for long.
 *
 * @param {string} url - of the WebSocket
 * @returns {Promise<number | undefined>}
 */
export async function timeAt(url) {
  const door = new URL(url.replace(/^ws/, "http"));
  door.pathname = door.pathname.replace(/\/ahp$/, "/healthz");
  door.search = "";
  try {
    const { headers } = await fetch(door, { cache: "no-store" });
    const date = Date.parse(headers.get("date") ?? "");
    return Number.isNaN(date) ? undefined : date;
  } catch {
    return undefined;
  }
}
