// The MCP servers of a session and the state of each.

/** @import { Customization, McpServer } from "../../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
import { attribute, h, KeyedViews, setText, show } from "../dom.js";

/** @type {Readonly<Record<string, string>>} */
const LABELS = {
  starting: "starting…",
  ready: "ready",
  error: "cannot be reached",
  authRequired: "needs a sign-in",
  stopped: "stopped",
  off: "switched off",
};
/** Problems and servers that are starting come first. */
const ORDER = ["error", "authRequired", "starting", "ready", "stopped", "off"];
/** @type {readonly Customization[]} */
const NONE = [];

export class Servers {
  element = h("ul", { class: "servers hint", "aria-label": "MCP servers", hidden: true });
  /** @type {readonly Customization[] | undefined} */
  shown = undefined;

  /** @param {SessionContext} context */
  constructor(context) {
    this.context = context;
    this.views = new KeyedViews(
      this.element,
      (/** @type {McpServer} */ server) => server.id,
      () => new ServerView(),
    );
  }

  /** @param {readonly Customization[] | undefined} customizations */
  update(customizations) {
    const wanted = this.context.access.isRecording ? NONE : (customizations ?? NONE);
    if (wanted === this.shown) return;
    this.shown = wanted;
    const servers = serversOf(wanted);
    this.views.update(servers);
    show(this.element, servers.length > 0);
  }
}

class ServerView {
  name = h("bdi", { class: "server-name" });
  state = h("span", { class: "server-state" });
  why = h("span", { class: "server-why", dir: "auto" });
  element = h(
    "li",
    { class: "server row" },
    h("span", { class: "dot", "aria-hidden": "true" }),
    this.name,
    this.state,
    this.why,
  );

  /** @param {McpServer} server */
  update(server) {
    const kind = kindOf(server);
    const why = whyOf(server);
    attribute(this.element, "data-state", kind);
    attribute(this.element, "title", why || undefined);
    setText(this.name, server.name);
    setText(this.state, LABELS[kind] ?? kind);
    setText(this.why, why);
  }
}

/** @param {McpServer} server */
function kindOf({ enabled, state }) {
  return enabled ? state.kind : "off";
}

/** @param {McpServer} server */
function whyOf({ enabled, state }) {
  if (!enabled) return "";
  if (state.kind === "error") return state.error.message;
  return state.kind === "authRequired" ? (state.description ?? "") : "";
}

/**
 * Including those of plugins and folders.
 * @param {readonly Customization[]} customizations
 * @returns {McpServer[]}
 */
function serversOf(customizations) {
  const all = customizations.flatMap((entry) => {
    if (entry.type === "mcpServer") return [entry];
    return (entry.children ?? []).filter((child) => child.type === "mcpServer");
  });
  return all.toSorted((a, b) => ORDER.indexOf(kindOf(a)) - ORDER.indexOf(kindOf(b)));
}
