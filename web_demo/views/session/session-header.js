// The header of a session: title, status, people, sharing and menu.

/** @import { SessionSummary } from "../../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
import { activityOf, isArchived } from "../../client/session-list.js";
import { goneSince } from "../../form/request-groups.js";
import { attribute, h, icon, setText, show } from "../dom.js";
import { ICONS } from "../icons.js";
import { Menu } from "../overlays.js";
import { People } from "./people.js";
import { sessionHash } from "../routes.js";
import { LABELS } from "../session-row.js";
import { ShareDialog } from "./share.js";
import { copyText } from "../toasts.js";

export class SessionHeader {
  title = h("h1", { class: "session-title one-line", dir: "auto" });
  edit = h("input", {
    class: "field-input title-edit",
    "aria-label": "Title",
    hidden: true,
    dir: "auto",
    onblur: () => this.#renamed(),
    onkeydown: (event) => this.#editKey(event),
  });
  state = h("span", { class: "status-pill hint one-line" });
  recorded = h(
    "span",
    { class: "status-pill hint one-line recording", hidden: true },
    icon(ICONS.play),
    "Recording",
  );
  share = h(
    "button",
    {
      class: "small share-button",
      "aria-label": "Share",
      onclick: () => new ShareDialog(this.context).open(),
    },
    icon(ICONS.share),
    h("span", null, "Share"),
  );

  /**
   * @param {SessionContext} context
   * @param {() => void} stop the turn that runs
   */
  constructor(context, stop) {
    this.context = context;
    this.stop = stop;
    this.people = new People(context);
    this.menu = new Menu("Session menu", () => this.#items());
    this.element = h(
      "header",
      { class: "session-head row" },
      h("a", { class: "icon-button back", href: "#/", "aria-label": "All sessions" }, icon(ICONS.back)),
      h("div", { class: "session-name row" }, this.title, this.edit, this.state, this.recorded),
      this.people.element,
      this.share,
      this.menu.element,
    );
  }

  update() {
    const { state, phase } = this.context.session;
    const summary = state?.summary;
    const isGone = phase === "gone";
    setText(this.title, isGone ? "Not found" : titleOf(summary, phase));
    const activity = this.#activity(summary);
    const doing = activity === "running" && summary?.activity;
    setText(this.state, doing || (LABELS[activity ?? ""] ?? ""));
    attribute(this.state, "data-activity", activity);
    show(this.state, activity !== undefined && !isGone && !this.context.access.isRecording);
    show(this.recorded, this.context.access.isRecording && !isGone);
    show(this.people.element, !isGone);
    show(this.share, this.context.access.mayDirect && phase === "open");
    show(this.menu.element, phase === "open");
    this.people.update();
  }

  /** @param {SessionSummary | undefined} summary */
  #activity(summary) {
    const requests = this.context.requests();
    const isAbandoned = requests.length > 0 && requests.every(goneSince);
    if (this.context.isAsking()) return isAbandoned ? "left" : "input-needed";
    return summary && activityOf(summary.status);
  }

  #items() {
    const { session, access } = this.context;
    const status = session.state?.summary.status ?? 0;
    const link = new URL(sessionHash(session.uri), location.href).href;
    return [
      { label: "Copy link", icon: ICONS.link, act: () => void copyText(link, "Link copied.") },
      access.mayDirect && { label: "Rename", icon: ICONS.pencil, act: () => this.#rename() },
      access.mayAnswer && {
        label: "Mark as unread",
        icon: ICONS.bell,
        act: () => this.#leaveUnread(),
      },
      access.mayDirect &&
        session.state?.activeTurn !== undefined && {
          label: "Stop the turn",
          icon: ICONS.stop,
          act: this.stop,
        },
      access.mayDirect && {
        label: isArchived(status) ? "Unarchive" : "Archive",
        icon: ICONS.archive,
        act: () => session.archive(!isArchived(status)),
      },
    ];
  }

  /** Otherwise it would be marked as read again at once. */
  #leaveUnread() {
    this.context.isLeftUnread = true;
    this.context.session.markRead(false);
    location.hash = "#/";
  }

  // Renaming

  #rename() {
    this.edit.value = this.context.session.state?.summary.title ?? "";
    show(this.title, false);
    show(this.edit, true);
    this.edit.select();
  }

  #renamed() {
    if (this.edit.hidden) return;
    const title = this.edit.value.trim();
    show(this.edit, false);
    show(this.title, true);
    if (title && title !== this.context.session.state?.summary.title) this.context.session.rename(title);
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

/** @param {SessionSummary | undefined} summary @param {string} phase */
function titleOf(summary, phase) {
  return summary?.title || (phase === "loading" ? "…" : "Untitled");
}
