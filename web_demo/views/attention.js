// Notifies people who look at another tab that input is needed: a count in the title, a badge on the
// icon, and optionally notifications and a sound.

/** @import { Host } from "../client/host.js" */
/** @import { Listed } from "../client/session-list.js" */
/** @import { SessionSummary } from "../client/types.d.ts" */
import { preference, setPreference } from "../client/browser.js";
import { activityOf, isAbandoned, isRecorded, latestFirst } from "../client/session-list.js";
import { oncePerFrame } from "./dom.js";
import { navigate, parseRoute, waitingHash } from "./routes.js";
import { announce } from "./toasts.js";

const TITLE = "session-server";

export class Attention {
  title = "";
  /** @type {number | undefined} how many sessions need input, as last shown */
  count = undefined;
  /** @type {Map<string, Notification>} */
  notifications = new Map();

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.update = oncePerFrame(() => this.#show());
    host.on("sessions", () => this.update());
    host.on("summary", (listed) => this.#changed(listed));
  }

  /** @param {string} title the title of what is shown */
  at(title) {
    if (title === this.title) return;
    this.title = title;
    this.update();
  }

  /** Sessions that need input, in the order of the list. */
  waiting() {
    return latestFirst((this.host.sessions ?? []).filter(needsInput));
  }

  #show() {
    const count = this.waiting().length;
    const text = this.title ? `${this.title} · ${TITLE}` : TITLE;
    document.title = count > 0 ? `(${count}) ${text}` : text;
    if (count === this.count) return;
    this.count = count;
    const mark = document.querySelector("link[rel=icon]");
    const wanted = count > 0 ? "icon-waiting.svg" : "icon.svg";
    if (mark instanceof HTMLLinkElement && !mark.href.endsWith(`/${wanted}`)) mark.href = wanted;
    badge(count);
  }

  /**
   * Once each time that a session begins to need input, and not for the one in view.
   * @param {Listed} listed
   */
  #changed({ session, summary, before }) {
    if (!needsInput(summary)) this.#closeNotification(session);
    if (!summary || !needsInput(summary) || needsInput(before)) return;
    const isLooking = document.visibilityState === "visible" && document.hasFocus();
    if (isLooking && parseRoute(location.hash).session === session) return;
    announce(`${summary.title || "A session"} needs input`);
    if (this.sounds) chime();
    if (this.notifies && !isLooking) this.#notify(session, summary);
  }

  /** @param {string} session @param {SessionSummary} summary */
  #notify(session, summary) {
    const shown = notificationOf(session, summary);
    if (!shown) return;
    this.notifications.set(session, shown);
    shown.addEventListener("click", () => {
      globalThis.focus();
      navigate(waitingHash(session));
      this.#closeNotification(session);
    });
  }

  /** Somebody has answered: the notification is not needed any more. */
  /** @param {string} session */
  #closeNotification(session) {
    this.notifications.get(session)?.close();
    this.notifications.delete(session);
  }

  // Preferences

  get notifies() {
    return (
      preference("notify") === "yes" &&
      "Notification" in globalThis &&
      Notification.permission === "granted"
    );
  }

  get sounds() {
    return preference("sound") === "yes";
  }

  /** @returns {Promise<string>} the message to show */
  async toggleNotifications() {
    if (this.notifies) {
      setPreference("notify", undefined);
      return "Notifications are off.";
    }
    if (!isSecureContext) return "Notifications need HTTPS; this page is on plain HTTP.";
    if (!("Notification" in globalThis)) return "This browser has no notifications.";
    const answer = await Notification.requestPermission();
    setPreference("notify", answer === "granted" ? "yes" : undefined);
    return answer === "granted"
      ? "You’ll be notified when input is needed."
      : "Your browser blocks notifications from this page. Allow them in its site settings.";
  }

  toggleSound() {
    setPreference("sound", this.sounds ? undefined : "yes");
    if (this.sounds) chime();
  }
}

/** @param {SessionSummary | undefined} summary */
function needsInput(summary) {
  return (
    summary !== undefined &&
    activityOf(summary.status) === "input-needed" &&
    !isAbandoned(summary) &&
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

/** @param {string} session @param {SessionSummary} summary */
function notificationOf(session, summary) {
  try {
    return new Notification(summary.title || "A session", {
      body: "Needs your input",
      tag: session,
      icon: "icon-waiting.svg",
    });
  } catch {
    return undefined; // Phones allow notifications only for installed pages.
  }
}

/** Two soft notes, generated here: no file to fetch. */
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
