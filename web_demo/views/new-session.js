// The dialog for a new session, and what the list shows while there is none.

/** @import { Host } from "../client/host.js" */
/** @import { Child } from "./dom.js" */
import { NO_AGENT } from "../client/session-list.js";
import { fill, h, iconButton, radioChoice, show } from "./dom.js";
import { ICONS } from "./icons.js";
import { DialogForm, openDialog } from "./overlays.js";
import { sessionHash } from "./routes.js";
import { copyText } from "./toasts.js";

export class NewSessionDialog {
  text = h("textarea", {
    class: "field-input",
    id: "new-text",
    rows: 3,
    dir: "auto",
    onkeydown: (event) => this.#key(event),
  });
  agents = h("fieldset", { class: "share-roles stack", onchange: () => this.#showMessage() });
  message = h(
    "div",
    { class: "stack" },
    h("label", { class: "hint", for: "new-text" }, "First message"),
    this.text,
  );

  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.form = new DialogForm("Start", () => this.#create(), this.agents, this.message).element;
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
      ...agents.map((agent) =>
        radioChoice("provider", agent.provider, agent === first, agent.displayName, agent.description),
      ),
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

  async #create() {
    const provider = this.#provider();
    const text = this.message.hidden ? "" : this.text.value.trim();
    const uri = await this.host.createSession({ provider });
    if (text) await this.#sendMessage(uri, text);
    this.dialog?.close();
    location.hash = sessionHash(uri);
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

// The empty list: how to create a session.

const USUAL = ["http://127.0.0.1:8737", "http://localhost:8737"];

/** A command that asks a question here, in parts between which it may wrap. */
function askLine() {
  const where = USUAL.includes(location.origin) ? [] : [`--url ${location.origin}`];
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
    h("button", { class: "primary", onclick: create }, "New session"),
    commandBox(askLine()),
  ];
}

/** @param {readonly string[]} line */
function commandBox(line) {
  return h(
    "div",
    { class: "command row" },
    h("code", null, ...line.flatMap((piece) => [h("span", null, piece), " "])),
    iconButton(ICONS.copy, "Copy the line", () => copyText(line.join(" "), "Copied.")),
  );
}
