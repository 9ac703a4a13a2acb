// The settings menu of this browser: notifications, colours, name; and the keyboard shortcuts.

/** @import { Host } from "../client/host.js" */
/** @import { Attention } from "./attention.js" */
import { preference, setPreference } from "../client/browser.js";
import { h } from "./dom.js";
import { ICONS } from "./icons.js";
import { Menu, openDialog } from "./overlays.js";
import { chooseName } from "./session/people.js";
import { toast } from "./toasts.js";

const THEMES = /** @type {const} */ (["system", "light", "dark"]);

export function applyTheme() {
  const theme = preference("theme") ?? "system";
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/** @param {Host} host @param {Attention} attention */
export function settingsMenu(host, attention) {
  return new Menu("Settings", () => [
    {
      label: "Notify me when input is needed",
      icon: ICONS.bell,
      isOn: attention.notifies,
      act: () => void attention.toggleNotifications().then((text) => toast(text)),
    },
    {
      label: "Play a sound",
      icon: ICONS.spark,
      isOn: attention.sounds,
      act: () => attention.toggleSound(),
    },
    { label: `Colours: ${preference("theme") ?? "system"}`, icon: ICONS.moon, act: nextTheme },
    {
      label: host.name ? `Your name: ${host.name}` : "Choose a name",
      icon: ICONS.pencil,
      act: () => chooseName(host),
    },
    { label: "Keyboard shortcuts", icon: ICONS.question, act: showKeys },
    host.token !== undefined && {
      label: "Forget this token",
      icon: ICONS.key,
      act: () => {
        host.forgetToken();
        toast("The token that this tab used was removed from this browser.");
      },
    },
  ]);
}

function nextTheme() {
  const now = THEMES.findIndex((theme) => theme === (preference("theme") ?? "system"));
  const next = THEMES[(now + 1) % THEMES.length] ?? "system";
  setPreference("theme", next);
  applyTheme();
  toast(next === "system" ? "Colours follow the system." : `Colours: ${next}.`);
}

// Keyboard shortcuts of the whole page; a form has its own.

const KEYS = [
  ["/", "Filter the sessions"],
  ["w", "Go to the next waiting question"],
  ["n", "New session"],
  ["↑ ↓", "Move through options or the list"],
  ["Space", "Choose an option"],
  ["1 … 9", "Choose an option by its number"],
  ["Enter", "Mark this question done and go on; send it if it is the only one"],
  ["← →", "Previous or next question (when not typing)"],
  ["y n", "Go to Yes or No, where Enter sends"],
  ["Ctrl Enter", "Review the answers, then send them (⌘ Enter on a Mac)"],
  ["Esc", "Leave a field; nothing is lost"],
  ["?", "This list"],
];

export function showKeys() {
  const rows = KEYS.map(([key, text]) =>
    h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, text)),
  );
  openDialog("Keyboard shortcuts", h("dl", { class: "keys" }, ...rows));
}

/** @param {Readonly<Record<string, () => void>>} acts */
export function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
    const act = event.defaultPrevented ? undefined : acts[event.key];
    if (!act || !isPlain || isTyping(event.target) || document.querySelector("dialog[open]"))
      return;
    event.preventDefault();
    act();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return (
      !["radio", "checkbox", "button"].includes(target.type) || target.name.startsWith("question-")
    );
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}
