/**
 * The sessions of a host, as a list that is kept up to date.
 */

/** @import {SessionSummary, SummaryChanges} from "./types.d.ts" */
/** @import {Protocol} from "./protocol.js" */
import { ROOT } from "./channels.js";
import { Events } from "./events.js";
import { updated } from "./reducers/updates.js";

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

  /** Announcements are not replayed, so after a reconnect the list is fetched again. */
  #fetch() {
    this.#protocol.exchange.ask("listSessions", { channel: ROOT }, {
      resolve: ({ items }) => this.#fill(items),
      reject: () => {}, // lost: it is asked for again on the next connection
    });
  }

  /** @param {readonly SessionSummary[]} items */
  #fill(items) {
    const before = this.#byUri;
    const isFirst = this.list === undefined;
    this.#byUri = new Map(
      items.map((item) => [item.resource, updated(before.get(item.resource) ?? item, item)]),
    );
    this.#told();
    if (isFirst) return;
    for (const session of new Set([...before.keys(), ...this.#byUri.keys()])) {
      this.#tell(session, this.#byUri.get(session), before.get(session));
    }
  }

  /**
   * @param {string} session
   * @param {SummaryChanges} changes
   */
  #change(session, changes) {
    const summary = this.#byUri.get(session);
    if (!summary) return;
    const activity = "activity" in changes ? { activity: changes.activity || undefined } : {};
    this.#put(session, updated(summary, { ...changes, ...activity }));
  }

  /**
   * @param {string} session
   * @param {SessionSummary | undefined} summary
   */
  #put(session, summary) {
    const before = this.#byUri.get(session);
    if (summary === before) return;
    if (summary) this.#byUri.set(session, summary);
    else this.#byUri.delete(session);
    if (this.list === undefined) return; // it is on its way
    this.#told();
    this.#tell(session, summary, before);
  }

  #told() {
    this.list = [...this.#byUri.values()];
    this.emit("change", this.list);
  }

  /**
   * @param {string} session
   * @param {SessionSummary | undefined} summary
   * @param {SessionSummary | undefined} before
   */
  #tell(session, summary, before) {
    if (summary !== before) this.emit("summary", { session, summary, before });
  }
}
