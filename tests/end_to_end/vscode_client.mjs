// VS Code's own agent host client against a host, told what to do line by line: {"do": …, "with": […]}.
// It prints one line for each: {"result": …} or {"error": …}. What VS Code gives its client are stubs.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../build/npm/package.json", import.meta.url));
const vscode = (path) =>
  import(pathToFileURL(require.resolve(`@codingame/monaco-vscode-api/vscode/vs/${path}`)).href);
const WebSocket = require("ws");
const { AgentHostProtocolClient } = await vscode("platform/agentHost/browser/agentHostProtocolClient");
const { StateComponents, buildDefaultChatUri } = await vscode("platform/agentHost/common/state/sessionState");
const settings = await vscode("platform/agentHost/common/remoteAgentHostService");
const { Emitter, Event } = await vscode("base/common/event");
const { URI } = await vscode("base/common/uri");

const [address] = process.argv.slice(2);
const warnings = [];
const notifications = [];
const watched = new Map();
let socket;

function transport() {
  const message = new Emitter();
  const close = new Emitter();
  let own;
  return {
    clientConnectionKind: "direct_websocket",
    onMessage: message.event,
    onClose: close.event,
    connect: () =>
      new Promise((resolve, reject) => {
        own = socket = new WebSocket(`ws://${address}`, { origin: "vscode-file://vscode-app" });
        own.on("open", resolve);
        own.on("error", reject);
        own.on("message", (data) => message.fire(JSON.parse(data)));
        own.on("close", () => close.fire());
      }),
    send: (frame) => own.send(JSON.stringify(frame)),
    dispose: () => own?.terminate(),
  };
}

const keep = (...words) => warnings.push(words.map(String).join(" "));
const silent = () => {};
const client = new AgentHostProtocolClient(
  address,
  transport,
  { clientInfo: { name: "vscode-agents-window", title: "VS Code Agents Window" } },
  { trace: silent, debug: silent, info: silent, warn: keep, error: keep },
  {},
  { onDidChangeConfiguration: Event.None, getValue: silent, inspect: () => ({}) },
  { telemetryLevel: 0 },
  { isWorkspaceTrustEnabled: () => false },
  { onDidChangeTrust: Event.None, onDidChangeTrustedFolders: Event.None, getTrustedUris: () => [] },
  {},
);
client.onDidNotification((notification) => notifications.push(notification));

/** Until its snapshot has come; whatever comes instead is thrown. */
async function subscribed(kind, uri) {
  const { object } = client.getSubscription(kind, URI.parse(uri), "test");
  while (object.value === undefined) await Event.toPromise(Event.any(object.onDidChange, object.onDidError));
  if (object.value instanceof Error) throw object.value;
  watched.set(uri, object);
}

const commands = {
  /** What VS Code makes of an entry in its settings, or of an address that is typed in. */
  entry: (raw) =>
    settings.isRawRemoteAgentHostEntry(raw) && settings.WEBSOCKET_ENTRY_TYPE_CONFIG.fromRaw(raw),
  typed: (text) => settings.parseRemoteAgentHostInput(text).parsed,
  settings: () => [settings.RemoteAgentHostsEnabledSettingId, settings.RemoteAgentHostsSettingId],
  connect: async () => {
    await client.connect();
    return client.initializeResult.get().protocolVersion;
  },
  root: () => client.rootState.value,
  sessions: async () =>
    (await client.listSessions()).map(({ session, summary, status }) => ({
      session: session.toString(),
      title: summary,
      status,
    })),
  create: async (provider) => (await client.createSession({ provider })).toString(),
  /** A session and its chat, whose name VS Code computes; the names as it spells them. */
  watch: async (session) => {
    const chat = buildDefaultChatUri(URI.parse(session));
    await subscribed(StateComponents.Session, session);
    await subscribed(StateComponents.Chat, chat);
    return chat;
  },
  state: (uri) => watched.get(uri).value,
  confirmed: (uri) => watched.get(uri).verifiedValue,
  dispatch: (uri, action) => client.dispatch(uri, action),
  dispose: async (session) => client.disposeSession(URI.parse(session)),
  /** As when a network goes away. */
  cut: () => socket.terminate(),
  connection: () => client.connectionState,
  notifications: () => notifications,
  warnings: () => warnings,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, with: args } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await commands[name](...args)) ?? null };
  } catch (error) {
    answer = { error: String(error.message ?? error), code: error.code };
  }
  console.log(JSON.stringify(answer));
}
client.dispose();
process.exit(0);
