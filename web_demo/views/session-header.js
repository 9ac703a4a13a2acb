// The head of a session: its name, where it stands, who is here, and what can be done with it.

/** @import { Room } from "./room.js" */
import { attribute, h, icon, say, show } from "./dom.js";
import { copyText } from "./clipboard.js";
import { ICONS } from "./icons.js";
import { Menu } from "./menu.js";
import { People } from "./people.js";
import { placeHash } from "./places.js";
import { goneSince } from "../form/groups.js";
import { ShareDialog } from "./share.js";
import { activityOf, isArchived } from "../wire/status.js";

/** @import { SessionSummary } from "../wire/types.d.ts" */

/** @type {Readonly<Record<string, string>>} */
const WORDS = {
  "input-needed": "Needs input",
  left: "No longer waiting",
  running: "Running",
  error: "Failed",
  idle: "Idle",
};

export class SessionHeader {
  title = h("h1", { class: "session-title", dir: "auto" });
  edit = h("input", {
    class: "field-input title-edit",
    "aria-label": "Title",
    hidden: true,
    dir: "auto",
    onblur: () => this.#renamed(),
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#editKey(event),
  });
  state = h("span", { class: "status-pill" });
  recorded = h(
    "span",
    { class: "status-pill recording", hidden: true },
    icon(ICONS.play),
    "Recording",
  );
  share = h(
    "button",
    {
      type: "button",
      class: "small share-button",
      "aria-label": "Share",
      onclick: () => this.#share(),
    },
    icon(ICONS.share),
    h("span", null, "Share"),
  );

  /**
   * @param {Room} room
   * @param {() => void} stop the turn that runs
   */
  constructor(room, stop) {
    this.room = room;
    this.stop = stop;
    this.people = new People(room);
    this.menu = new Menu("Session menu", () => this.#items());
    this.element = h(
      "header",
      { class: "session-head" },
      h(
        "a",
        { class: "icon-button back", href: "#/", "aria-label": "All sessions" },
        icon(ICONS.back),
      ),
      h("div", { class: "session-name" }, this.title, this.edit, this.state, this.recorded),
      this.people.element,
      this.share,
      this.menu.element,
    );
  }

  update() {
    const { state, phase } = this.room.session;
    const summary = state?.summary;
    const isGone = phase === "gone";
    say(this.title, isGone ? "Not found" : titleOf(summary, phase));
    const activity = this.#activity(summary);
    say(
      this.state,
      summary?.activity && activity === "running"
        ? summary.activity
        : (WORDS[activity ?? ""] ?? ""),
    );
    attribute(this.state, "data-activity", activity);
    show(this.state, activity !== undefined && !isGone && !this.room.access.isRecording);
    show(this.recorded, this.room.access.isRecording && !isGone);
    show(this.people.element, !isGone);
    show(this.share, this.room.access.mayDirect && phase === "open");
    show(this.menu.element, phase === "open");
    this.people.update();
  }

  /** @param {SessionSummary | undefined} summary */
  #activity(summary) {
    const requests = this.room.requests();
    const isLeft = requests.length > 0 && requests.every(goneSince);
    if (this.room.isAsking()) return isLeft ? "left" : "input-needed";
    return summary && activityOf(summary.status);
  }

  #items() {
    const { session, access } = this.room;
    const status = session.state?.summary.status ?? 0;
    const link = new URL(placeHash(session.uri), location.href).href;
    return [
      { words: "Copy link", icon: ICONS.link, act: () => void copyText(link, "Link copied.") },
      access.mayDirect && { words: "Rename", icon: ICONS.pencil, act: () => this.#rename() },
      access.mayAnswer && {
        words: "Mark as unread",
        icon: ICONS.bell,
        act: () => this.#leaveUnread(),
      },
      access.mayDirect &&
        session.state?.activeTurn !== undefined && {
          words: "Stop the turn",
          icon: ICONS.stop,
          act: this.stop,
        },
      access.mayDirect && {
        words: isArchived(status) ? "Unarchive" : "Archive",
        icon: ICONS.archive,
        act: () => session.archive(!isArchived(status)),
      },
    ];
  }

  /** One who stays would have read it again at once. */
  #leaveUnread() {
    this.room.isLeftUnread = true;
    this.room.session.markRead(false);
    location.hash = "#/";
  }

  #share() {
    new ShareDialog(this.room).open();
  }

  // Renaming

  #rename() {
    this.edit.value = this.room.session.state?.summary.title ?? "";
    show(this.title, false);
    show(this.edit, true);
    this.edit.select();
  }

  #renamed() {
    if (this.edit.hidden) return;
    const title = this.edit.value.trim();
    show(this.edit, false);
    show(this.title, true);
    if (title && title !== this.room.session.state?.summary.title) this.room.session.rename(title);
  }

  /** @param {KeyboardEvent} event */
  #editKey(event) {
    if (event.key === "Escape") this.edit.value = "";
    if (event.key === "Escape" || event.key === "Enter") this.edit.blur();
  }

  remove() {
    this.menu.close();
  }
}

/**
 * @param {SessionSummary | undefined} summary
 * @param {string} phase
 */
function titleOf(summary, phase) {
  return summary?.title || (phase === "loading" ? "…" : "Untitled");
}
