// A client of the TypeScript SDK; ../clients/README.md says what it takes and prints.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../build/mcp/node/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const spec = JSON.parse(process.argv[2]);
const canAnswer = "answers" in spec || "match" in spec;
const asked = [];
const progress = [];
const heard = [];
let news = () => {};

function answer(params) {
  if (!spec.match) return spec.answers[Math.min(asked.length, spec.answers.length) - 1];
  const fields = params.requestedSchema?.properties ?? {};
  const picked = Object.entries(spec.match).filter(([field]) => field in fields);
  return { action: "accept", ...(picked.length && { content: Object.fromEntries(picked) }) };
}

const client = new Client(
  { name: spec.name ?? "zoo-client", version: "1" },
  {
    capabilities: canAnswer ? { elicitation: { form: {}, url: {} } } : {},
    versionNegotiation: { mode: spec.era ?? "auto" },
  },
);
if (canAnswer)
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push(params);
    return answer(params);
  });

const options = {
  ...(spec.timeout && { timeout: spec.timeout * 1000 }),
  onprogress: ({ message }) => progress.push(message ?? ""),
};
const perform = {
  "tools/call": (name, args) => client.callTool({ name, arguments: args }, options),
  "prompts/get": (name, args) => client.getPrompt({ name, arguments: args }, options),
  "resources/read": (uri) => client.readResource({ uri }, options),
  "tools/list": () => client.listTools(),
  "prompts/list": () => client.listPrompts(),
  "resources/list": () => client.listResources(),
  "resources/templates/list": () => client.listResourceTemplates(),
  "completion/complete": (name, argument, value) =>
    client.complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value } }),
};
const every = async (calls) => {
  if (spec.parallel) return Promise.all(calls.map(one));
  const results = [];
  for (const call of calls) results.push(await one(call));
  return results;
};
const hear = (what) => {
  heard.push(what);
  news();
};
const watched = async ({ uris, events }) => {
  client.setNotificationHandler("notifications/tools/list_changed", () => hear("tools"));
  client.setNotificationHandler("notifications/resources/updated", (n) => hear(n.params.uri));
  const stream = await client.listen({ toolsListChanged: true, resourceSubscriptions: uris });
  const results = await every(spec.calls);
  while (heard.length < events) await new Promise((resolve) => (news = resolve));
  await stream.close();
  return [...results, ...(await every(spec.later ?? []))];
};
const one = async ([method, ...rest]) => {
  try {
    return await perform[method](...rest);
  } catch ({ code, message, data }) {
    return { error: { code, message, data } };
  }
};

const transport = spec.command
  ? new StdioClientTransport({ command: spec.command[0], args: spec.command.slice(1) })
  : new StreamableHTTPClientTransport(new URL(spec.url), {
      requestInit: { headers: spec.headers ?? {} },
    });
await client.connect(transport);
const results = await (spec.watch ? watched(spec.watch) : every(spec.calls));
console.log(
  JSON.stringify({
    version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
    server: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities(),
    asked,
    progress,
    heard,
    results,
  }),
);
await client.close();
