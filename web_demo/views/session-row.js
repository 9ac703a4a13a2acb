// One session in the list.

/** @import { Host } from "../wire/host.js" */
/** @import { SessionSummary } from "../wire/types.d.ts" */
/** @import { Self } from "./self.js" */
import { attribute, h, icon, say, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { goTo, placeHash, waitingHash } from "./places.js";
import { isRecorded } from "./recordings.js";
import { toast } from "./toast.js";
import { ago, capital, wholeTime } from "../text/words.js";
import { activityOf, isArchived, isLeft, isRead } from "../wire/status.js";

/** @type {Readonly<Record<string, string>>} */
const WORDS = {
  "input-needed": "needs input",
  left: "no longer waiting",
  running: "running",
  error: "failed",
  idle: "idle",
  recording: "recording",
};

/** @param {SessionSummary} summary */
export function kindOf(summary) {
  if (isRecorded(summary)) return "recording";
  return isLeft(summary) ? "left" : activityOf(summary.status);
}

export class SessionRow {
  dot = h("span", { class: "dot" });
  title = h("span", { class: "row-title", dir: "auto" });
  said = h("span", { class: "unseen" });
  about = h("span", { class: "row-about", dir: "auto" });
  time = h("time", { class: "row-time" });
  answer = h("span", { class: "row-answer", "aria-hidden": "true" }, "Answer");
  link = h(
    "a",
    { class: "row-link", onclick: (/** @type {MouseEvent} */ event) => this.#open(event) },
    this.dot,
    h(
      "span",
      { class: "row-words" },
      this.title,
      this.said,
      h("span", { class: "row-line" }, this.about, this.time),
    ),
    h("span", { class: "row-new" }),
    this.answer,
  );
  archive = h(
    "button",
    { type: "button", class: "icon-button row-archive", onclick: () => this.#archive() },
    icon(ICONS.archive),
  );
  element = h("div", { class: "session-row", role: "listitem" }, this.link, this.archive);

  /**
   * @param {Host} host
   * @param {Self} self
   */
  constructor(host, self) {
    this.host = host;
    this.self = self;
  }

  /** @param {{ kind: string, summary?: SessionSummary }} line */
  update({ summary }) {
    if (!summary) return;
    this.summary = summary;
    const activity = kindOf(summary);
    const needs = activity === "input-needed";
    const isNew = !isRead(summary.status) && activity !== "recording";
    attribute(this.element, "data-activity", activity);
    attribute(this.element, "data-unread", isNew);
    attribute(
      this.link,
      "href",
      needs || activity === "left" ? waitingHash(summary.resource) : placeHash(summary.resource),
    );
    say(this.title, summary.title || "Untitled");
    attribute(this.title, "title", summary.title || undefined);
    say(this.about, summary.activity || this.#agent(summary.provider));
    say(this.said, `${WORDS[activity]}${isNew ? ", unread" : ""}`);
    show(this.answer, needs);
    say(this.answer, this.self.role === "observer" ? "View" : "Answer");
    show(this.archive, activity !== "recording");
    const words = isArchived(summary.status) ? "Unarchive" : "Archive";
    attribute(this.archive, "aria-label", `${words}: ${summary.title || "Untitled"}`);
    attribute(this.archive, "title", words);
    this.times();
  }

  /** @param {string} provider */
  #agent(provider) {
    const agent = this.host.root?.agents.find((each) => each.provider === provider);
    return agent?.displayName ?? capital(provider);
  }

  /** Who looks at it has changed. */
  again() {
    if (this.summary) this.update({ kind: "row", summary: this.summary });
  }

  times() {
    if (!this.summary) return;
    say(this.time, ago(this.summary.modifiedAt, this.host.now()));
    attribute(this.time, "title", wholeTime(this.summary.modifiedAt));
  }

  /**
   * Also when it is open already: what waits has the focus again.
   * @param {MouseEvent} event
   */
  #open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    goTo(this.link.hash);
  }

  /** @param {boolean} isOpen */
  mark(isOpen) {
    attribute(this.link, "aria-current", isOpen ? "page" : undefined);
  }

  #archive() {
    const { summary } = this;
    if (!summary) return;
    const isOn = !isArchived(summary.status);
    const words = isOn ? "Archived" : "Unarchived";
    const undo = () => this.#put(summary.resource, !isOn);
    const isAsking = activityOf(summary.status) === "input-needed";
    const more = isOn && isAsking ? ". It stays in the list until its questions are answered." : "";
    const said = `${words}: ${summary.title || "Untitled"}${more}`;
    this.#put(summary.resource, isOn, () => toast(said, undo));
  }

  /**
   * Marks are actions of the session, so it is opened for the moment.
   * @param {string} uri
   * @param {boolean} isOn in the archive
   * @param {() => void} [done]
   */
  #put(uri, isOn, done) {
    const session = this.host.open(uri);
    session
      .dispatch({ type: "session/isArchivedChanged", isArchived: isOn })
      .then(done)
      .catch((/** @type {unknown} */ error) =>
        toast(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => session.close());
  }
}
