// How people who look elsewhere learn that they are needed: a number in the title, a mark on the icon,
// and if they want it a notice and a sound.

/** @import { Host } from "../wire/host.js" */
/** @import { SessionSummary } from "../wire/types.d.ts" */
import { announce } from "./announcer.js";
import { oncePerFrame } from "./dom.js";
import { recall, remember } from "./memory.js";
import { latestFirst } from "./order.js";
import { isRecorded } from "./recordings.js";
import { goTo, placeOf, waitingHash } from "./places.js";
import { activityOf, isLeft } from "../wire/status.js";

const TITLE = "session-server";

/** @typedef {{ session: string, summary?: SessionSummary, before?: SessionSummary }} News */

export class Attention {
  place = "";
  /** @type {Map<string, Notification>} */
  notices = new Map();

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.update = oncePerFrame(() => this.#show());
    host.on("sessions", () => this.update());
    host.on("summary", (/** @type {News} */ news) => this.#news(news));
  }

  /** @param {string} place what the page shows */
  at(place) {
    this.place = place;
    this.update();
  }

  /** In the order of the list. */
  waiting() {
    return latestFirst((this.host.sessions ?? []).filter(needsInput));
  }

  #show() {
    const count = this.waiting().length;
    const words = this.place ? `${this.place} · ${TITLE}` : TITLE;
    document.title = count > 0 ? `(${count}) ${words}` : words;
    const mark = document.querySelector("link[rel=icon]");
    const wanted = count > 0 ? "icon-waiting.svg" : "icon.svg";
    if (mark instanceof HTMLLinkElement && !mark.href.endsWith(`/${wanted}`)) mark.href = wanted;
    badge(count);
  }

  /**
   * Once for each time that a session begins to need somebody, and never for what is in view.
   * @param {News} news
   */
  #news({ session, summary, before }) {
    if (!needsInput(summary)) this.#settle(session);
    if (!summary || !needsInput(summary) || needsInput(before)) return;
    const isLooking = document.visibilityState === "visible" && document.hasFocus();
    if (isLooking && placeOf(location.hash).session === session) return;
    announce(`${summary.title || "A session"} needs input`);
    if (this.sounds) chime();
    if (this.notifies && !isLooking) this.#notify(session, summary);
  }

  /**
   * @param {string} session
   * @param {SessionSummary} summary
   */
  #notify(session, summary) {
    const shown = noticeOf(session, summary);
    if (!shown) return;
    this.notices.set(session, shown);
    shown.addEventListener("click", () => {
      globalThis.focus();
      goTo(waitingHash(session));
      this.#settle(session);
    });
  }

  /** What somebody has answered need not be read any more. */
  /** @param {string} session */
  #settle(session) {
    this.notices.get(session)?.close();
    this.notices.delete(session);
  }

  // Choices

  get notifies() {
    return (
      recall("notify") === "yes" &&
      "Notification" in globalThis &&
      Notification.permission === "granted"
    );
  }

  get sounds() {
    return recall("sound") === "yes";
  }

  /** @returns {Promise<string>} what to tell the person */
  async toggleNotices() {
    if (this.notifies) {
      remember("notify", undefined);
      return "Notifications are off.";
    }
    if (!isSecureContext) return "Notifications need HTTPS; this page is on plain HTTP.";
    if (!("Notification" in globalThis)) return "This browser has no notifications.";
    const answer = await Notification.requestPermission();
    remember("notify", answer === "granted" ? "yes" : undefined);
    return answer === "granted"
      ? "You’ll be notified when input is needed."
      : "Your browser blocks notifications from this page. Allow them in its site settings.";
  }

  toggleSound() {
    remember("sound", this.sounds ? undefined : "yes");
    if (this.sounds) chime();
  }
}

/** @param {SessionSummary | undefined} summary */
function needsInput(summary) {
  return (
    summary !== undefined &&
    activityOf(summary.status) === "input-needed" &&
    !isLeft(summary) &&
    !isRecorded(summary)
  );
}

/** @param {number} count */
function badge(count) {
  const badging =
    /** @type {{ setAppBadge?: (n: number) => Promise<void>, clearAppBadge?: () => Promise<void> }} */ (
      navigator
    );
  const done = count > 0 ? badging.setAppBadge?.(count) : badging.clearAppBadge?.();
  done?.catch(() => undefined);
}

/**
 * @param {string} session
 * @param {SessionSummary} summary
 */
function noticeOf(session, summary) {
  try {
    return new Notification(summary.title || "A session", {
      body: "Needs your input",
      tag: session,
      icon: "icon-waiting.svg",
    });
  } catch {
    return undefined; // Phones allow them to installed pages alone; title and badge remain.
  }
}

/** Two soft notes, made here: no file to fetch. */
function chime() {
  const audio = new AudioContext();
  [660, 880].forEach((pitch, index) => {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    const from = audio.currentTime + index * 0.14;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.0001, from);
    volume.gain.exponentialRampToValueAtTime(0.08, from + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.0001, from + 0.3);
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(from + 0.32);
  });
  setTimeout(() => void audio.close(), 1000);
}
