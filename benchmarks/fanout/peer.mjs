// The same in Node: whatever one client sends, all get a prepared envelope.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [port, modules, envelopeFile] = process.argv.slice(2);
const { WebSocketServer } = createRequire(`${modules}/`)("ws");
const envelope = Buffer.from(readFileSync(envelopeFile));
const server = new WebSocketServer({ host: "127.0.0.1", port: Number(port), perMessageDeflate: false });

server.on("connection", (socket) => {
  socket.on("error", () => {});
  socket.on("message", () => {
    for (const client of server.clients) client.send(envelope, { binary: false });
  });
});
