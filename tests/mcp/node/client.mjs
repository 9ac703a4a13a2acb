// A client of the TypeScript SDK; ../clients/README.md says what it takes and prints.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../build/mcp/node/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const spec = JSON.parse(process.argv[2]);
const canAnswer = "answers" in spec || "match" in spec;
const asked = [];
const progress = [];

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
const results = [];
if (spec.parallel) results.push(...(await Promise.all(spec.calls.map(one))));
else for (const call of spec.calls) results.push(await one(call));
console.log(
  JSON.stringify({
    version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
    server: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities(),
    asked,
    progress,
    results,
  }),
);
await client.close();
