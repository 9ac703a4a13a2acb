// The head of a form: who asks, in which round, and what for.

/** @import { Room } from "../views/room.js" */
/** @import { Group } from "./groups.js" */
import { copyText } from "../views/clipboard.js";
import { h, icon } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { placeHash } from "../views/places.js";
import { counted, subjectOf } from "../text/words.js";

const PASSIVE = "people";

/**
 * @param {Room} room
 * @param {Group} group
 * @param {string} titleId
 */
export function headOf(room, group, titleId) {
  const [first] = group.requests;
  const { server, tool, round, by } = first?._meta ?? {};
  const asker = server ? [server, tool].filter(Boolean).join(" · ") : (by?.name ?? askerOf(room));
  return [
    h(
      "p",
      { class: "asker" },
      icon(server ? ICONS.tool : ICONS.question),
      h("bdi", { class: "asker-name" }, asker),
      h("span", null, " asks"),
      round !== undefined && round > 1 && h("span", { class: "round" }, `Round ${round}`),
      linkButton(placeHash(room.session.uri, first?.id)),
    ),
    h("h2", { class: "subject", id: titleId, dir: "auto" }, titleOf(group)),
  ];
}

/**
 * Where no agent is, a program asks, and people answer.
 * @param {Room} room
 */
function askerOf(room) {
  const isPassive = room.session.state?.summary.provider === PASSIVE;
  return isPassive ? "A program" : room.agentName();
}

/** @param {Group} group */
function titleOf({ requests }) {
  const [first] = requests;
  if (requests.length === 1 && first) return subjectOf(first);
  return `${first?._meta?.tool ?? "It"} needs ${counted(requests.length, "thing")} from you`;
}

/** @param {string} hash */
function linkButton(hash) {
  const copy = () => void copyText(new URL(hash, location.href).href, "Link copied.");
  const words = "Copy a link to this question";
  return h(
    "button",
    {
      type: "button",
      class: "icon-button copy-link",
      "aria-label": words,
      title: words,
      onclick: copy,
    },
    icon(ICONS.link),
  );
}
