// Peers in Node: node peer.mjs ws|coalesced|socketio|hocuspocus <port> <folder with node_modules>
// The first three do what the host does with a draft: parse, check, build the next state, encode an envelope.
// Hocuspocus merges Yjs documents instead, which is its own way of decoding, checking and reducing.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [kind, port, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const local = { host: "127.0.0.1", port: Number(port) };
const form = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`q${n}`, "text"]));
const sessions = new Map();
const subscribers = new Map();
let serverSeq = 0;

function changed(clientId, { channel, clientSeq, action }) {
  const session = sessions.get(channel) ?? { requests: { r: { questions: form, answers: {} } } };
  const { type, requestId, questionId, answer } = action;
  const request = session.requests[requestId];
  if (type !== "session/inputAnswerChanged" || !request) throw new Error("no such request");
  if (answer.state !== "draft" || typeof answer.value.value !== "string") throw new Error("no draft");
  if (request.questions[questionId] !== answer.value.kind) throw new Error("no such question");
  const at = Date.now();
  const by = { id: "local" };
  const kept = { state: "draft", _meta: { by, at, via: "person" }, value: answer.value };
  const answered = { ...request, answers: { ...request.answers, [questionId]: kept } };
  sessions.set(channel, { ...session, requests: { ...session.requests, [requestId]: answered }, modifiedAt: at });
  return {
    channel,
    action: { type, requestId, questionId, answer: kept },
    serverSeq: ++serverSeq,
    origin: { clientId, clientSeq },
    _meta: { at, by },
  };
}

function subscribed(socket, channel) {
  if (!subscribers.has(channel)) subscribers.set(channel, new Set());
  subscribers.get(channel).add(socket);
}

// Deliveries of one turn of the event loop leave together: framed once per channel, one write per subscriber.
const pending = new Map();

function coalesced(Sender, channel, text) {
  if (pending.size === 0) setImmediate(flush);
  if (!pending.has(channel)) pending.set(channel, []);
  const options = { fin: true, opcode: 1, mask: false, readOnly: false, rsv1: false };
  pending.get(channel).push(...Sender.frame(Buffer.from(text), options));
}

function flush() {
  for (const [channel, frames] of pending) {
    const joined = Buffer.concat(frames);
    for (const client of subscribers.get(channel)) client._socket.write(joined);
  }
  pending.clear();
}

function ws(deliver) {
  const { WebSocketServer } = require("ws");
  const server = new WebSocketServer({ ...local, perMessageDeflate: false });
  server.on("connection", (socket) => {
    let clientId;
    socket.on("error", () => {});
    socket.on("close", () => subscribers.forEach((some) => some.delete(socket)));
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(data);
      if (method === "initialize") {
        clientId = params.clientId;
        for (const channel of params.initialSubscriptions) subscribed(socket, channel);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: {} }));
        return;
      }
      const envelope = changed(clientId, params);
      deliver(params.channel, JSON.stringify({ jsonrpc: "2.0", method: "action", params: envelope }));
    });
  });
}

function toEach(channel, text) {
  for (const client of subscribers.get(channel)) client.send(text);
}

function socketio() {
  const { Server } = require("socket.io");
  const http = createServer();
  const server = new Server(http, { transports: ["websocket"], perMessageDeflate: false });
  server.on("connection", (socket) => {
    socket.on("subscribe", (channel) => {
      socket.join(channel);
      socket.emit("subscribed", channel);
    });
    socket.on("dispatch", (params) => {
      server.to(params.channel).emit("action", changed(socket.id, params));
    });
  });
  http.listen(local);
}

async function hocuspocus() {
  const { Server } = require("@hocuspocus/server");
  const server = new Server({ address: local.host, quiet: true, stopOnSignals: false });
  await server.listen(local.port);
}

const { Sender } = require("ws");
const kinds = {
  ws: () => ws(toEach),
  coalesced: () => ws((channel, text) => coalesced(Sender, channel, text)),
  socketio,
  hocuspocus,
};
await kinds[kind]();
