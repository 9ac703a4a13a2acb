// Making a session: with whom, and what to say first.

/** @import { AgentInfo } from "../wire/types.d.ts" */
/** @import { Host } from "../wire/host.js" */
import { openDialog } from "./dialog.js";
import { fill, h, say, show } from "./dom.js";
import { placeHash } from "./places.js";

const PASSIVE = "people";

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
    this.said = h(
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
        onchange: () => this.#fit(),
      },
      this.agents,
      this.said,
      this.problem,
      h("div", { class: "dialog-actions" }, this.make),
    );
  }

  open() {
    const off = this.host.on("root", () => this.#offer());
    this.dialog = openDialog("New session", this.form);
    this.dialog.addEventListener("close", off);
    this.#offer();
    if (!this.said.hidden) this.text.focus();
  }

  /** Those who answer come before the one who never does. */
  #offer() {
    const chosen = this.#provider();
    const agents = (this.host.root?.agents ?? []).toSorted(
      (a, b) => Number(a.provider === PASSIVE) - Number(b.provider === PASSIVE),
    );
    const first = agents.find((agent) => agent.provider === chosen) ?? agents[0];
    fill(
      this.agents,
      h("legend", null, "With"),
      ...agents.map((agent) => agentChoice(agent, agent === first)),
    );
    this.#fit();
  }

  #provider() {
    const chosen = this.form.querySelector("input[name=provider]:checked");
    return chosen instanceof HTMLInputElement ? chosen.value : undefined;
  }

  #fit() {
    show(this.said, this.#provider() !== PASSIVE);
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
    const text = this.said.hidden ? "" : this.text.value.trim();
    try {
      const uri = await this.host.createSession(provider === undefined ? {} : { provider });
      if (text) await this.#say(uri, text);
      this.dialog?.close();
      location.hash = placeHash(uri);
    } catch (error) {
      say(this.problem, error instanceof Error ? error.message : String(error));
      show(this.problem, true);
    }
    this.make.disabled = false;
  }

  /**
   * @param {string} uri
   * @param {string} text
   */
  async #say(uri, text) {
    const session = this.host.open(uri);
    try {
      await session.startTurn(text);
    } finally {
      session.close();
    }
  }
}

/**
 * @param {AgentInfo} agent
 * @param {boolean} isFirst
 */
function agentChoice(agent, isFirst) {
  return h(
    "label",
    { class: "choice" },
    h("input", { type: "radio", name: "provider", value: agent.provider, checked: isFirst }),
    h(
      "span",
      { class: "choice-words" },
      h("bdi", { class: "choice-label" }, agent.displayName),
      h("bdi", { class: "choice-description" }, agent.description),
    ),
  );
}
