/**
 * A browser tab without a browser, for another process: each line of stdin is code that runs with
 * `host`, `session`, `field` and the like in reach; each line of stdout is `{value}` or `{error}`.
 */

import { createInterface } from "node:readline";

import { Host } from "../../../web_demo/client/host.js";
import { MemoryStorage } from "../../../web_demo/client/storage.js";

const PATIENCE = 10_000;
const LONGEST = 60_000;

/** Everything that a test can reach. @type {any} */
const world = { Host, MemoryStorage };

/** Whether sockets get through, for going offline. */
let isOnline = true;
/** Whether what the host says is lost. */
let isDeaf = false;
/** @type {Set<WebSocket>} */
const sockets = new Set();

class Line extends WebSocket {
  /**
   * @param {string} address
   * @param {string[]} subprotocols
   */
  constructor(address, subprotocols) {
    super(isOnline ? address : "ws://127.0.0.1:9", subprotocols);
    sockets.add(this);
  }

  /** @param {(event: MessageEvent) => void} hear */
  set onmessage(hear) {
    super.onmessage = (/** @type {MessageEvent} */ event) => isDeaf || hear?.(event);
  }

  /** @param {string} text */
  send(text) {
    world.log.push({ at: Date.now(), ...JSON.parse(text) });
    super.send(text);
  }
}

/** What outlives a page is the browser's storage, and the tab's. */
world.begin = (/** @type {string} */ address) => {
  isOnline = true;
  isDeaf = false;
  sockets.clear();
  const browser = { local: new MemoryStorage(), tab: new MemoryStorage() };
  Object.assign(world, { url: address, browser, events: [], log: [] });
};

/**
 * The browser's storage, for as long as a page is there: timers of one that is gone still fire in
 * this process, and must not write into what the next one finds.
 *
 * @param {any} storage
 * @param {{ isThere: boolean }} page
 */
const lent = (storage, page) => ({
  get length() {
    return storage.length;
  },
  key: (/** @type {number} */ index) => storage.key(index),
  getItem: (/** @type {string} */ key) => storage.getItem(key),
  setItem: (/** @type {string} */ key, /** @type {string} */ value) => {
    if (page.isThere) storage.setItem(key, value);
  },
  removeItem: (/** @type {string} */ key) => {
    if (page.isThere) storage.removeItem(key);
  },
});

/** A page is loaded, with what its browser has kept. */
world.load = (/** @type {object} */ options = {}) => {
  const { local, tab } = world.browser;
  world.page = { isThere: true };
  world.host = new Host({
    url: world.url,
    storage: lent(local, world.page),
    tabStorage: lent(tab, world.page),
    connection: {
      openSocket: (/** @type {string} */ address, /** @type {string[]} */ subprotocols) =>
        new Line(address, subprotocols),
    },
    ...options,
  });
  world.host.start();
  return world.host.clientId;
};

/** The page is loaded again, as the browser does it. */
world.reload = () => {
  world.host.hide();
  world.crash();
  return world.load();
};

/** The page is gone without a word. */
world.crash = () => {
  const dead = world.host;
  if (!dead) return;
  world.page.isThere = false;
  for (const socket of sockets) socket.close();
  dead.stop();
  world.host = world.session = undefined;
};

world.offline = () => {
  isOnline = false;
  for (const socket of sockets) socket.close();
};

world.deaf = () => {
  isDeaf = true;
};

world.online = () => {
  isOnline = true;
  isDeaf = false;
  world.host.retry();
};

world.open = (/** @type {string} */ uri) => {
  world.session = world.host.open(uri);
  for (const name of ["closed", "rejected", "gone"]) {
    world.session.on(name, (/** @type {any} */ about) => world.events.push([name, about]));
  }
};

world.field = (/** @type {string} */ question, request = world.request().id) =>
  world.session.field(request, question);

world.text = (/** @type {string} */ value) => ({ kind: "text", value });

world.request = () => world.session.confirmed?.inputRequests?.[0];

/** Accepts the open request with everything that is shown and not submitted yet. */
world.accept = () => {
  const { id, questions } = world.request();
  const shown = questions.map((/** @type {any} */ question) => [question.id, world.field(question.id)]);
  const drafts = shown.filter(([, { state }]) => state === "draft");
  const answers = drafts.map(([name, { value }]) => [name, { state: "submitted", value }]);
  return world.session.complete(id, "accept", Object.fromEntries(answers));
};

world.completion = (/** @type {string} */ id) =>
  world.session.completions.find((/** @type {any} */ { requestId }) => requestId === id);

/** What the host has as the answer. */
world.held = (/** @type {string} */ question) => world.request()?.answers?.[question];

/** What waits in the browser's storage to be sent. */
world.unsent = () => {
  const { local } = world.browser;
  const keys = Array.from({ length: local.length }, (_, index) => local.key(index));
  return keys.filter((key) => /:(draft|action)\[/.test(key));
};

world.until = async (/** @type {() => any} */ look, patience = PATIENCE) => {
  const end = Date.now() + patience;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`not within ${patience} ms: ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

world.sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Code that a test runs may name what is only there later. */
for (const name of ["host", "session"]) world[name] ??= undefined;

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;

/**
 * Modules are strict and have no `with`, so what there is goes in by name.
 *
 * @param {string} code
 */
function runIn(code) {
  const names = Object.keys(world);
  return new AsyncFunction(...names, code)(...names.map((name) => world[name]));
}

/** @param {string} line */
const overdue = async (line) => {
  await new Promise((resolve) => setTimeout(resolve, LONGEST).unref());
  throw new Error(`this takes longer than ${LONGEST} ms: ${line}`);
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const value = await Promise.race([runIn(JSON.parse(line)), overdue(line)]);
    answer = { value: value === undefined ? null : value };
  } catch (error) {
    answer = { error: String(error instanceof Error ? error.stack : error), code: error?.code };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
