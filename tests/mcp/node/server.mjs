// A server of the TypeScript SDK: several keys at once, a signed state with an expiry of its own,
// dependent rounds. On stdin and stdout, or with `--port N` over HTTP.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";

const require = createRequire(new URL("../../../build/mcp/node/package.json", import.meta.url));
const {
  McpServer,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
} = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");

const { values: options } = parseArgs({
  options: {
    port: { type: "string" },
    ttl: { type: "string", default: "600" },
    key: { type: "string", default: "a key of the zoo that is long enough" },
    effects: { type: "string" },
  },
});

const codec = createRequestStateCodec({ key: options.key, ttlSeconds: Number(options.ttl) });

const effect = (tool, what) => {
  if (options.effects)
    appendFileSync(options.effects, `${JSON.stringify({ tool, pid: process.pid, ...what })}\n`);
};
const says = (text) => ({ content: [{ type: "text", text }] });
const object = (properties = {}, required = Object.keys(properties)) =>
  fromJsonSchema({ type: "object", properties, required });
const ask = (message, properties, required = Object.keys(properties)) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: "object", properties, required },
  });

function build() {
  const server = new McpServer(
    { name: "zoo-typescript", version: "1.0" },
    { instructions: "A server for tests.", requestState: { verify: codec.verify } },
  );
  tools(server);
  rest(server);
  return server;
}

function tools(server) {
  server.registerTool(
    "echo",
    {
      description: "Say it back.",
      inputSchema: object({ text: { type: "string" } }),
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => says(text),
  );

  server.registerTool(
    "trip",
    { description: "Three questions at once.", inputSchema: object() },
    async (_, ctx) => {
      const answers = ctx.mcpReq.inputResponses;
      const city = acceptedContent(answers, "city");
      const nights = acceptedContent(answers, "nights");
      const meal = acceptedContent(answers, "meal");
      if (city && nights && meal && ctx.mcpReq.requestState()?.step === "asked") {
        effect("trip", { city: city.city });
        return says(`${city.city}, ${nights.nights} nights, ${meal.meal}`);
      }
      return inputRequired({
        inputRequests: {
          city: ask("Which city?", { city: { type: "string", minLength: 1 } }),
          nights: ask("How many nights?", { nights: { type: "integer", minimum: 1 } }),
          meal: ask("Which meal?", { meal: { type: "string", enum: ["breakfast", "none"] } }),
        },
        requestState: await codec.mint({ step: "asked" }),
      });
    },
  );

  server.registerTool(
    "deploy",
    {
      description: "One round for staging, two for production.",
      inputSchema: object({ service: { type: "string" } }),
    },
    async ({ service }, ctx) => {
      const answers = ctx.mcpReq.inputResponses;
      const where =
        ctx.mcpReq.requestState()?.environment ??
        acceptedContent(answers, "where")?.environment;
      if (!where)
        return inputRequired({
          inputRequests: {
            where: ask(`Where should ${service} go?`, {
              environment: { type: "string", enum: ["staging", "production"] },
            }),
          },
          requestState: await codec.mint({}),
        });
      const sure = acceptedContent(answers, "sure")?.sure;
      if (where === "production" && sure === undefined)
        return inputRequired({
          inputRequests: { sure: ask("This is production. Really?", { sure: { type: "boolean" } }) },
          requestState: await codec.mint({ environment: where }),
        });
      if (sure === false) return says(`${service} stays where it is`);
      effect("deploy", { service, environment: where });
      return says(`${service} is in ${where}`);
    },
  );

  server.registerTool(
    "survey",
    { description: "Says which of the three answers it got.", inputSchema: object() },
    async (_, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, "city");
      if (answer.kind === "missing")
        return inputRequired({
          inputRequests: { city: ask("Which city?", { city: { type: "string" } }) },
        });
      effect("survey", { action: answer.action });
      return says(String(answer.action));
    },
  );

  server.registerTool(
    "visit",
    { description: "A URL to be opened.", inputSchema: object() },
    async (_, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, "consent");
      if (answer.kind === "missing")
        return inputRequired({
          inputRequests: {
            consent: inputRequired.elicitUrl({
              message: "Sign in, please.",
              url: "https://example.com/in?a=b",
            }),
          },
          requestState: await codec.mint({ step: "visit" }),
        });
      effect("visit", { action: answer.action });
      return says(String(answer.action));
    },
  );
}

function rest(server) {
  server.registerPrompt(
    "brief",
    { description: "A prompt that asks for its subject." },
    async (ctx) => {
      const subject = acceptedContent(ctx.mcpReq.inputResponses, "subject")?.subject;
      if (!subject)
        return inputRequired({
          inputRequests: { subject: ask("About what?", { subject: { type: "string" } }) },
          requestState: await codec.mint({}),
        });
      const text = `Write about ${subject}.`;
      return { messages: [{ role: "user", content: { type: "text", text } }] };
    },
  );
  server.registerResource("sign", "zoo://sign", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "Do not feed." }],
  }));
}

function serveHttp(port) {
  const handler = createMcpHandler(build);
  const listener = createServer(async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.on("close", () => gone.abort());
    const hasBody = incoming.method === "POST";
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method,
      headers: incoming.headers,
      body: hasBody ? Readable.toWeb(incoming) : undefined,
      duplex: "half",
      signal: gone.signal,
    });
    const response = await handler.fetch(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
    else outgoing.end();
  });
  listener.listen(port, "127.0.0.1", () =>
    console.log(`ready http://127.0.0.1:${listener.address().port}/mcp`),
  );
}

if (options.port === undefined) serveStdio(build);
else serveHttp(Number(options.port));
