// What all views of one open session share: the session, who the viewer is in it, and what they may
// do.

/** @import { Host } from "../../client/host.js" */
/** @import { Session } from "../../client/session.js" */
/** @import { Author, InputRequest, Present } from "../../client/types.d.ts" */
/** @import { Access, Viewer } from "../access.js" */
import { activityOf, isRecording } from "../../client/session-list.js";
import { capital } from "../../text/format.js";
import { accessOf } from "../access.js";
import { messageOf, toast } from "../toasts.js";

/** @type {readonly InputRequest[]} */
const NONE = [];

export class SessionContext {
  /** The viewer marked it as unread. */
  isLeftUnread = false;
  /** @type {Present | undefined} */
  #lastSelf = undefined;

  /**
   * @param {Host} host
   * @param {Viewer} viewer
   * @param {Session} session
   * @param {() => void} redrawForms in the next frame
   */
  constructor(host, viewer, session, redrawForms) {
    this.host = host;
    this.viewer = viewer;
    this.session = session;
    this.redrawForms = redrawForms;
  }

  /** As last reported by the host: the role stays the same while offline. */
  get #here() {
    const { presence } = this.session;
    this.#lastSelf =
      presence.find((each) => each.clientId === this.host.clientId) ?? this.#lastSelf;
    return this.#lastSelf;
  }

  /** @returns {Access} */
  get access() {
    return accessOf(this.#here?.role ?? this.viewer.role, isRecording(this.session.state));
  }

  /** @returns {Author | undefined} */
  get me() {
    return this.#here?.by ?? this.host.me;
  }

  /** @returns {readonly InputRequest[]} */
  requests() {
    return this.session.state?.inputRequests ?? NONE;
  }

  /** Also while an answer given here is not confirmed yet. */
  isAsking() {
    if (this.session.completions.length > 0) return true;
    return activityOf(this.session.state?.summary.status ?? 0) === "input-needed";
  }

  /** The name of the agent, which asks if no tool does. */
  agentName() {
    const provider = this.session.state?.summary.provider ?? "";
    return this.host.agentName(provider) ?? capital(provider);
  }

  /**
   * Shows a message if this fails.
   * @param {Promise<unknown>} work
   * @param {() => void} [failed]
   */
  attempt(work, failed) {
    work.catch((/** @type {unknown} */ error) => {
      toast(messageOf(error));
      failed?.();
    });
  }
}
