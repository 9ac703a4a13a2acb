// The dialog for a new session, and what the list shows while there is none.

/** @import { Host } from "../client/host.js" */
/** @import { AgentInfo } from "../client/types.d.ts" */
/** @import { Child } from "./dom.js" */
import { NO_AGENT } from "../client/session-list.js";
import { fill, h, icon, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { openDialog } from "./overlays.js";
import { sessionHash } from "./routes.js";
import { copyText } from "./toasts.js";

export class NewSessionDialog {
  text = h("textarea", {
    class: "field-input",
    id: "new-text",
    rows: 3,
    dir: "auto",
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
  });
  problem = h("p", { class: "problem", role: "alert", hidden: true });
  make = h("button", { type: "submit", class: "primary" }, "Start");

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.agents = h("fieldset", { class: "share-roles" });
    this.message = h(
      "div",
      { class: "stack" },
      h("label", { class: "small-label", for: "new-text" }, "First message"),
      this.text,
    );
    this.form = h(
      "form",
      {
        class: "share-form",
        onsubmit: (/** @type {Event} */ event) => void this.#create(event),
        onchange: () => this.#showMessage(),
      },
      this.agents,
      this.message,
      this.problem,
      h("div", { class: "dialog-actions" }, this.make),
    );
  }

  open() {
    const off = this.host.on("root", () => this.#offer());
    this.dialog = openDialog("New session", this.form);
    this.dialog.addEventListener("close", off);
    this.#offer();
    if (!this.message.hidden) this.text.focus();
  }

  /** Agents that answer come before the one that only collects answers. */
  #offer() {
    const chosen = this.#provider();
    const agents = (this.host.root?.agents ?? []).toSorted(
      (a, b) => Number(a.provider === NO_AGENT) - Number(b.provider === NO_AGENT),
    );
    const first = agents.find((agent) => agent.provider === chosen) ?? agents[0];
    fill(
      this.agents,
      h("legend", null, "With"),
      ...agents.map((agent) => agentChoice(agent, agent === first)),
    );
    this.#showMessage();
  }

  #provider() {
    const chosen = this.form.querySelector("input[name=provider]:checked");
    return chosen instanceof HTMLInputElement ? chosen.value : undefined;
  }

  #showMessage() {
    show(this.message, this.#provider() !== NO_AGENT);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
  }

  /** @param {Event} event */
  async #create(event) {
    event.preventDefault();
    this.make.disabled = true;
    const provider = this.#provider();
    const text = this.message.hidden ? "" : this.text.value.trim();
    try {
      const uri = await this.host.createSession(provider === undefined ? {} : { provider });
      if (text) await this.#sendMessage(uri, text);
      this.dialog?.close();
      location.hash = sessionHash(uri);
    } catch (error) {
      setText(this.problem, error instanceof Error ? error.message : String(error));
      show(this.problem, true);
    }
    this.make.disabled = false;
  }

  /** @param {string} uri @param {string} text */
  async #sendMessage(uri, text) {
    const session = this.host.open(uri);
    try {
      await session.startTurn(text);
    } finally {
      session.close();
    }
  }
}

/** @param {AgentInfo} agent @param {boolean} isFirst */
function agentChoice(agent, isFirst) {
  return h(
    "label",
    { class: "choice" },
    h("input", { type: "radio", name: "provider", value: agent.provider, checked: isFirst }),
    h(
      "span",
      { class: "choice-text" },
      h("bdi", { class: "choice-label" }, agent.displayName),
      h("bdi", { class: "choice-description" }, agent.description),
    ),
  );
}

// The empty list: how to create a session.

const USUAL = ["http://127.0.0.1:8737", "http://localhost:8737"];

/** A command that asks a question here, in parts between which it may wrap. */
export function askLine(origin = location.origin) {
  const where = USUAL.includes(origin) ? [] : [`--url ${origin}`];
  return ["session-server ask", '"Shall we deploy?"', ...where];
}

/**
 * @param {(() => void) | undefined} create `undefined` if the viewer may not
 * @returns {Child[]}
 */
export function emptyList(create) {
  if (!create)
    return [
      h("h2", null, "Nothing here yet"),
      h("p", null, "Sessions that are shared with you appear here."),
    ];
  return [
    h("h2", null, "No sessions yet"),
    h("p", null, "Start one here, or ask a question from a terminal."),
    h("button", { type: "button", class: "primary", onclick: create }, "New session"),
    commandOf(askLine()),
  ];
}

/** @param {readonly string[]} line */
function commandOf(line) {
  const copy = () => void copyText(line.join(" "), "Copied.");
  return h(
    "div",
    { class: "command" },
    h("code", null, ...line.flatMap((piece) => [h("span", null, piece), " "])),
    h(
      "button",
      { type: "button", class: "icon-button", "aria-label": "Copy the line", onclick: copy },
      icon(ICONS.copy),
    ),
  );
}
