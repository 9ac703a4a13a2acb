// One open session as its views see it: the wire's session, who we are in it and what we may do.

/** @import { Author, InputRequest, Present } from "../wire/types.d.ts" */
/** @import { Host } from "../wire/host.js" */
/** @import { Session } from "../wire/session.js" */
/** @import { Access } from "./access.js" */
/** @import { Self } from "./self.js" */
/** @import { QuestionView } from "../form/question.js" */
import { accessOf } from "./access.js";
import { isRecording } from "./recordings.js";
import { toast } from "./toast.js";
import { capital } from "../text/words.js";
import { activityOf } from "../wire/status.js";

/** @type {readonly InputRequest[]} */
const NONE = [];

export class Room {
  /** Whether its person goes away on purpose as if they had not seen it. */
  isLeftUnread = false;
  /** @type {Present | undefined} */
  #lastSelf = undefined;

  /**
   * @param {Host} host
   * @param {Self} self
   * @param {Session} session
   * @param {(view: QuestionView) => void} edited somebody typed here
   */
  constructor(host, self, session, edited) {
    this.host = host;
    this.self = self;
    this.session = session;
    this.edited = edited;
  }

  /** As the host last told: who is offline has not become somebody else. */
  get #here() {
    const { presence } = this.session;
    this.#lastSelf =
      presence.find((each) => each.clientId === this.host.clientId) ?? this.#lastSelf;
    return this.#lastSelf;
  }

  /** @returns {Access} */
  get access() {
    return accessOf(this.#here?.role ?? this.self.role, isRecording(this.session.state));
  }

  /** @returns {Author | undefined} */
  get me() {
    return this.#here?.by ?? this.host.me;
  }

  /** @returns {readonly InputRequest[]} */
  requests() {
    return this.session.state?.inputRequests ?? NONE;
  }

  /** Also while an answer given here waits for the host to take it. */
  isAsking() {
    if (this.session.completions.length > 0) return true;
    return activityOf(this.session.state?.summary.status ?? 0) === "input-needed";
  }

  /** The name of whoever asks when no tool does. */
  agentName() {
    const provider = this.session.state?.summary.provider ?? "";
    const agent = this.host.root?.agents.find((each) => each.provider === provider);
    return agent?.displayName ?? capital(provider);
  }

  /**
   * Waits for something that may be refused, and says so.
   * @param {Promise<unknown>} work
   * @param {() => void} [failed]
   */
  attempt(work, failed) {
    work.catch((/** @type {unknown} */ error) => {
      toast(error instanceof Error ? error.message : String(error));
      failed?.();
    });
  }
}
