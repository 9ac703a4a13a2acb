// What each person chooses for this browser: how they are told, how the page looks, their name.

import { ICONS } from "./icons.js";
import { Menu } from "./menu.js";
import { showKeys } from "./keys.js";
import { recall, remember } from "./memory.js";
import { chooseName } from "./name-prompt.js";
import { toast } from "./toast.js";

/** @import { Host } from "../wire/host.js" */
/** @import { Attention } from "./attention.js" */

const THEMES = /** @type {const} */ (["system", "light", "dark"]);

export function applyTheme() {
  const theme = recall("theme") ?? "system";
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/**
 * @param {Host} host
 * @param {Attention} attention
 */
export function settingsMenu(host, attention) {
  return new Menu("Settings", () => [
    {
      words: "Notify me when input is needed",
      icon: ICONS.bell,
      isOn: attention.notifies,
      act: () => void attention.toggleNotices().then((words) => toast(words)),
    },
    {
      words: "Play a sound",
      icon: ICONS.spark,
      isOn: attention.sounds,
      act: () => attention.toggleSound(),
    },
    { words: `Colours: ${recall("theme") ?? "system"}`, icon: ICONS.moon, act: nextTheme },
    {
      words: host.name ? `Your name: ${host.name}` : "Choose a name",
      icon: ICONS.pencil,
      act: () => chooseName(host),
    },
    { words: "Keyboard shortcuts", icon: ICONS.question, act: showKeys },
    host.token !== undefined && {
      words: "Forget this token",
      icon: ICONS.key,
      act: () => forget(host),
    },
  ]);
}

/** @param {Host} host */
function forget(host) {
  host.forgetToken();
  toast("This browser no longer keeps the token that this tab used.");
}

function nextTheme() {
  const now = THEMES.findIndex((theme) => theme === (recall("theme") ?? "system"));
  const next = THEMES[(now + 1) % THEMES.length] ?? "system";
  remember("theme", next);
  applyTheme();
  toast(next === "system" ? "Colours follow the system." : `Colours: ${next}.`);
}
