// One session in the list.

/** @import { Host } from "../client/host.js" */
/** @import { SessionSummary } from "../client/types.d.ts" */
/** @import { Viewer } from "./access.js" */
import { activityOf, isArchived, isAbandoned, isRead, isRecorded } from "../client/session-list.js";
import { ago, capital, wholeTime } from "../text/format.js";
import { attribute, h, iconButton, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { navigate, sessionHash, waitingHash } from "./routes.js";
import { messageOf, toast } from "./toasts.js";

/** @type {Readonly<Record<string, string>>} */
export const LABELS = {
  "input-needed": "Needs input",
  left: "No longer waiting",
  running: "Running",
  error: "Failed",
  idle: "Idle",
  recording: "Recording",
};

/** @param {SessionSummary} summary */
export function kindOf(summary) {
  if (isRecorded(summary)) return "recording";
  return isAbandoned(summary) ? "left" : activityOf(summary.status);
}

export class SessionRow {
  title = h("span", { class: "row-title one-line", dir: "auto" });
  status = h("span", { class: "unseen" });
  about = h("span", { class: "row-about faint one-line", dir: "auto" });
  time = h("time", { class: "row-time faint" });
  line = h("span", { class: "row-line" }, this.about, this.time);
  answer = h("span", { class: "row-answer", "aria-hidden": "true" }, "Answer");
  link = h(
    "a",
    { class: "row-link", onclick: (event) => this.#open(event) },
    h("span", { class: "dot" }),
    h("span", { class: "row-text" }, this.title, this.status, this.line),
    h("span", { class: "row-new" }),
    this.answer,
  );
  archive = iconButton(ICONS.archive, "Archive", () => this.#archive(), {
    class: "icon-button row-archive",
  });
  element = h("div", { class: "session-row", role: "listitem" }, this.link, this.archive);

  /** @param {Host} host @param {Viewer} viewer @param {SessionSummary} summary */
  constructor(host, viewer, summary) {
    this.host = host;
    this.viewer = viewer;
    this.summary = summary;
  }

  /** @param {SessionSummary} summary */
  update(summary) {
    this.summary = summary;
    const activity = kindOf(summary);
    const needs = activity === "input-needed";
    const isNew = !isRead(summary.status) && activity !== "recording";
    attribute(this.element, "data-activity", activity);
    attribute(this.element, "data-unread", isNew);
    attribute(
      this.link,
      "href",
      needs || activity === "left" ? waitingHash(summary.resource) : sessionHash(summary.resource),
    );
    setText(this.title, summary.title || "Untitled");
    attribute(this.title, "title", summary.title || undefined);
    const agent = this.host.agentName(summary.provider) ?? capital(summary.provider);
    setText(this.about, summary.activity || agent);
    setText(this.status, `${LABELS[activity]?.toLowerCase()}${isNew ? ", unread" : ""}`);
    show(this.answer, needs);
    setText(this.answer, this.viewer.role === "observer" ? "View" : "Answer");
    show(this.archive, activity !== "recording");
    const label = isArchived(summary.status) ? "Unarchive" : "Archive";
    attribute(this.archive, "aria-label", `${label}: ${summary.title || "Untitled"}`);
    attribute(this.archive, "title", label);
    this.times();
  }

  times() {
    setText(this.time, ago(this.summary.modifiedAt, this.host.now()));
    attribute(this.time, "title", wholeTime(this.summary.modifiedAt));
  }

  /**
   * Also if it is open already: the waiting question gets the focus again.
   * @param {MouseEvent} event
   */
  #open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(this.link.hash);
  }

  /** @param {boolean} isOpen */
  mark(isOpen) {
    attribute(this.link, "aria-current", isOpen ? "page" : undefined);
  }

  #archive() {
    const { summary } = this;
    const isOn = !isArchived(summary.status);
    const label = isOn ? "Archived" : "Unarchived";
    const undo = () => this.#setArchived(summary.resource, !isOn);
    const isAsking = activityOf(summary.status) === "input-needed";
    const more = isOn && isAsking ? ". It stays in the list until its questions are answered." : "";
    const message = `${label}: ${summary.title || "Untitled"}${more}`;
    this.#setArchived(summary.resource, isOn, () => toast(message, undo));
  }

  /**
   * Archiving is an action of the session, so it is opened for a moment.
   * @param {string} uri
   * @param {boolean} isOn in the archive
   * @param {() => void} [done]
   */
  #setArchived(uri, isOn, done) {
    const session = this.host.open(uri);
    session
      .dispatch({ type: "session/isArchivedChanged", isArchived: isOn })
      .then(done)
      .catch((/** @type {unknown} */ error) => toast(messageOf(error)))
      .finally(() => session.close());
  }
}
