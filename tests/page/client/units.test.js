/** Parts of the client that need no host. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Subscriptions, PENDING_LIMIT } from "../../../web_demo/client/connection/subscriptions.js";
import { ConnectionStatus, HostClock } from "../../../web_demo/client/connection/connection-status.js";
import { Credential } from "../../../web_demo/client/connection/credential.js";
import { outcomeIn, isEcho } from "../../../web_demo/client/echoes.js";
import { DraftField } from "../../../web_demo/client/drafts/draft-field.js";
import { ClientError } from "../../../web_demo/client/errors.js";
import { Events } from "../../../web_demo/client/events.js";
import { JsonRpcClient, FRAME_BYTES } from "../../../web_demo/client/connection/json-rpc.js";
import { newId } from "../../../web_demo/client/tab-identity.js";
import { BrowserStorage, MemoryStorage } from "../../../web_demo/client/storage.js";
import { Pending } from "../../../web_demo/client/mirror.js";
import { endpointOf, preference, setPreference } from "../../../web_demo/client/browser.js";
import { Backoff, finalError, refusalReason } from "../../../web_demo/client/connection/retry-policy.js";
import { Presence } from "../../../web_demo/client/presence.js";
import { Protocol } from "../../../web_demo/client/connection/protocol.js";
import { Tab } from "../../../web_demo/client/tab-identity.js";
import { failsPattern } from "../../../web_demo/form/validation.js";
import { webAddress } from "../../../web_demo/text/addresses.js";
import addresses from "../../corpus/web_addresses.json" with { type: "json" };

const SESSION = "ahp-session:/beds";
const DAY = 24 * 3_600_000;

const state = (more = {}) => ({
  summary: { resource: SESSION, provider: "p", title: "", status: 1, createdAt: 1, modifiedAt: 1 },
  lifecycle: "ready",
  turns: [],
  ...more,
});

const client = () => ({
  clientId: "me",
  renew() {
    this.clientId = "me again";
  },
});

/** A protocol whose frames go nowhere but into a list. */
function connected({ sessions = [SESSION] } = {}) {
  const protocol = new Protocol(client(), () => 7);
  const frames = [];
  const mirrors = sessions.map((uri) => protocol.subscriptions.watch(uri));
  protocol.connected((text) => frames.push(JSON.parse(text)));
  const say = (message) => protocol.receive(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const snapshots = sessions.map((resource) => ({ resource, state: state(), fromSeq: 5 }));
  say({ id: 1, result: { protocolVersion: "0.3.0", serverSeq: 5, snapshots } });
  return { protocol, frames, say, mirror: mirrors[0] };
}

const rename = (title) => ({ type: "session/titleChanged", title });

function dispatched(protocol, mirror, action, seq = 1) {
  return new Promise((settle) => {
    protocol.subscriptions.dispatch(mirror, new Pending(seq, action, 9, settle));
  });
}

test("only web addresses can be opened", () => {
  const isOpenable = (address) => webAddress(address) !== undefined;
  assert.deepEqual(addresses.openable.filter(isOpenable), addresses.openable);
  assert.deepEqual(addresses.refused.filter(isOpenable), []);
});

// Reconnecting

test("a preference that cannot be stored lasts until the page closes", (context) => {
  const stored = new Map();
  let isFull = false;
  const before = globalThis.localStorage;
  context.after(() => Object.assign(globalThis, { localStorage: before }));
  globalThis.localStorage = /** @type {any} */ ({
    /** @param {string} key */
    getItem: (key) => stored.get(key) ?? null,
    /** @param {string} key @param {string} value */
    setItem(key, value) {
      if (isFull) throw new DOMException("full", "QuotaExceededError");
      stored.set(key, value);
    },
    /** @param {string} key */
    removeItem: (key) => stored.delete(key),
  });
  setPreference("theme", "dark");
  isFull = true;
  setPreference("theme", "light");
  assert.equal(preference("theme"), "light");
  isFull = false;
  setPreference("theme", "dark");
  assert.equal(preference("theme"), "dark");
  setPreference("theme", undefined);
  assert.equal(preference("theme"), undefined);
});

test("backoff doubles up to a limit, with jitter", () => {
  const longest = new Backoff(() => 1);
  const shortest = new Backoff(() => 0);
  const delays = Array.from({ length: 9 }, () => longest.nextDelay(0));
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000]);
  assert.equal(shortest.nextDelay(0), 50);
  assert.equal(longest.nextDelay(5000), 100, "after a connection that lasted");
});

test("close codes decide whether to reconnect", () => {
  for (const code of [1000, 1001, 1005, 1006, 1011, 1012, 1013, 4000, 4001, 4499]) {
    assert.equal(finalError(code, ""), undefined, String(code));
  }
  for (const code of [1003, 1007, 1008, 1009, 4500, 4999]) {
    const kind = code === 4500 ? "unauthorized" : "fatal";
    assert.equal(finalError(code, "no")?.code, kind, String(code));
  }
  assert.match(finalError(4500, "not allowed any more").message, /not allowed any more/);
  assert.match(finalError(4500, "").message, /4500/);
});

test("the reason for a refused socket comes from HTTP", async () => {
  const asked = [];
  const answer = (status, body) => async (url, { headers }) => {
    asked.push([String(url), headers.Authorization]);
    return new Response(body, { status });
  };
  const url = "ws://h:1/ahp";
  const error = await refusalReason(url, "t", answer(401, JSON.stringify({ detail: "It has expired." })));
  assert.deepEqual([error.code, error.message], ["unauthorized", "It has expired."]);
  assert.deepEqual(asked, [["http://h:1/v1/sessions?limit=1", "Bearer t"]]);
  assert.equal((await refusalReason(url, "t", answer(403, "plain"))).code, "fatal");
  const tooMany = JSON.stringify({ code: "tooManyFailures", detail: "Too many." });
  assert.equal((await refusalReason(url, "t", answer(429, tooMany))).code, "unauthorized");
  assert.equal(await refusalReason(url, "t", answer(429, "{}")), undefined);
  assert.equal(await refusalReason(url, "t", answer(200, "{}")), undefined);
  assert.equal(await refusalReason(url, "t", answer(503, "{}")), undefined);
  assert.equal(await refusalReason(url, "t", async () => { throw new Error("away"); }), undefined);
});

// The protocol

test("the first connection initializes, the next one reconnects", () => {
  const { protocol, frames, say } = connected();
  assert.equal(frames[0].method, "initialize");
  assert.deepEqual(frames[0].params.initialSubscriptions, ["ahp-root://", SESSION]);
  say({ method: "action", params: { channel: SESSION, action: rename("x"), serverSeq: 8 } });
  protocol.disconnected();
  protocol.connected((text) => frames.push(JSON.parse(text)));
  assert.deepEqual([frames.at(-1).id, frames.at(-1).method], [1, "reconnect"]);
  assert.equal(frames.at(-1).params.lastSeenServerSeq, 8);
});

test("an unknown client is initialized on the same socket", () => {
  const { protocol, frames, say } = connected();
  protocol.disconnected();
  protocol.connected((text) => frames.push(JSON.parse(text)));
  say({ id: 1, error: { code: -32008, message: "not known" } });
  assert.equal(frames.at(-1).method, "initialize");
});

test("a refused handshake is fatal, an internal error is retried", () => {
  for (const [code, kind] of [[-32005, "fatal"], [-32603, "command"]]) {
    const protocol = new Protocol(client(), () => 7);
    const refused = [];
    protocol.on("refused", (error) => refused.push(error));
    protocol.connected(() => {});
    protocol.receive(JSON.stringify({ id: 1, error: { code, message: "Not you." } }));
    assert.deepEqual(refused.map((error) => [error.code, error.message]), [[kind, "Not you."]]);
  }
});

test("a client id of another principal is replaced once", () => {
  const { protocol, frames, say } = connected();
  const refused = [];
  protocol.on("refused", (error) => refused.push(error.code));
  protocol.disconnected();
  protocol.connected((text) => frames.push(JSON.parse(text)));
  say({ id: 1, error: { code: -32009, message: "It belongs to someone else." } });
  assert.deepEqual([frames.at(-1).method, frames.at(-1).params.clientId], ["initialize", "me again"]);
  say({ id: 2, error: { code: -32009, message: "It belongs to someone else." } });
  assert.deepEqual([frames.at(-1).id, refused], [2, ["fatal"]]);
});

test("the name is sent first on every connection", () => {
  const { protocol, frames, say, mirror } = connected();
  protocol.setName("Ana");
  assert.equal(frames.at(-1).params.name, "Ana", "at once while there is a connection");
  protocol.disconnected();
  void dispatched(protocol, mirror, rename("x"));
  frames.length = 0;
  protocol.connected((text) => frames.push(JSON.parse(text)));
  say({ id: 1, result: { type: "replay", actions: [], missing: [] } });
  const order = ["reconnect", "presence/update", "dispatchAction"];
  assert.deepEqual(frames.map(({ method }) => method).slice(0, 3), order);
});

test("a replay settles what arrived; the rest is sent again under its number", async () => {
  const { protocol, frames, say, mirror } = connected();
  const first = dispatched(protocol, mirror, rename("one"), 1);
  dispatched(protocol, mirror, rename("two"), 2);
  protocol.disconnected();
  frames.length = 0;
  protocol.connected((text) => frames.push(JSON.parse(text)));
  const origin = { clientId: "me", clientSeq: 1 };
  const echo = { channel: SESSION, action: rename("one"), serverSeq: 6, origin };
  say({ id: 1, result: { type: "replay", actions: [echo], missing: [] } });
  assert.equal((await first).serverSeq, 6);
  const sent = frames.filter(({ method }) => method === "dispatchAction");
  assert.deepEqual(sent.map(({ params }) => [params.clientSeq, params.action.title]), [[2, "two"]]);
  assert.equal(mirror.state.summary.title, "two");
  assert.equal(mirror.confirmed.summary.title, "one");
});

test("an envelope from before a reconnect is ignored", () => {
  const { say, mirror } = connected();
  say({ method: "action", params: { channel: SESSION, action: rename("x"), serverSeq: 5 } });
  assert.equal(mirror.state.summary.title, "");
});

test("a channel that is missing from a replay is gone", () => {
  const { protocol, say, mirror } = connected();
  protocol.disconnected();
  protocol.connected(() => {});
  say({ id: 1, result: { type: "replay", actions: [], missing: [SESSION] } });
  assert.equal(mirror.error.code, "gone");
});

test("a refusal undoes the action and has a reason", async () => {
  const { protocol, say, mirror } = connected();
  const verdict = dispatched(protocol, mirror, rename("x"));
  assert.equal(mirror.state.summary.title, "x");
  const origin = { clientId: "me", clientSeq: 1 };
  const _meta = { code: "limit", questionId: "q" };
  say({
    method: "action",
    params: {
      channel: SESSION, action: rename("x"), serverSeq: 5, origin, _meta,
      rejectionReason: "Too long.",
    },
  });
  const error = await verdict;
  assert.deepEqual([error.code, error.message, error.refusal, error.questionId],
    ["rejected", "Too long.", "limit", "q"]);
  assert.equal(mirror.state, mirror.confirmed);
  assert.equal(mirror.state.summary.title, "");
});

test("refusals and echoes of other clients are ignored", () => {
  const { protocol, say, mirror } = connected();
  dispatched(protocol, mirror, rename("x"));
  const origin = { clientId: "other", clientSeq: 1 };
  const params = { channel: SESSION, action: rename("x"), serverSeq: 6, origin };
  say({ method: "action", params: { ...params, rejectionReason: "No." } });
  say({ method: "action", params });
  assert.equal(mirror.pending.length, 1);
});

test("an action that cannot be applied is left out, and the state is fetched", (context) => {
  context.mock.method(console, "warn", () => {});
  const { frames, say, mirror } = connected();
  say({ method: "action", params: { channel: SESSION, action: { type: "session/new" }, serverSeq: 6 } });
  assert.equal(mirror.position, 6);
  say({ method: "action", params: { channel: SESSION, action: { type: "session/inputRequested" }, serverSeq: 7 } });
  assert.equal(frames.at(-1).method, "subscribe");
  const snapshot = { resource: SESSION, state: state({ turns: [1] }), fromSeq: 7 };
  say({ id: frames.at(-1).id, result: { snapshot } });
  assert.deepEqual(mirror.state.turns, [1]);
});

test("a deferred change is settled when the host makes it", async () => {
  const { protocol, say, mirror } = connected();
  const change = { type: "session/modelChanged", model: { id: "m" } };
  const verdict = dispatched(protocol, mirror, change);
  say({ method: "action", params: { channel: SESSION, action: change, serverSeq: 9 } });
  assert.equal((await verdict).serverSeq, 9);
});

test("a session that is opened during the handshake is subscribed to after it", () => {
  const protocol = new Protocol(client(), () => 7);
  const frames = [];
  protocol.connected((text) => frames.push(JSON.parse(text)));
  protocol.subscriptions.watch(SESSION);
  const root = { resource: "ahp-root://", state: { agents: [] }, fromSeq: 1 };
  protocol.receive(JSON.stringify({ id: 1, result: { serverSeq: 1, snapshots: [root] } }));
  assert.deepEqual([frames.at(-1).method, frames.at(-1).params.channel], ["subscribe", SESSION]);
});

test("a response is handled before the next frame", () => {
  const { protocol, frames, say } = connected({ sessions: [] });
  const mirror = protocol.subscriptions.watch(SESSION);
  say({ id: frames.at(-1).id, result: { snapshot: { resource: SESSION, state: state(), fromSeq: 6 } } });
  say({ method: "action", params: { channel: SESSION, action: rename("x"), serverSeq: 7 } });
  assert.equal(mirror.state.summary.title, "x");
});

// Presence

test("typing is reported again in time, and a hidden page reports at once that it stopped", (context) => {
  context.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1_000_000 });
  const { protocol, frames } = connected();
  const presence = new Presence(protocol, "ahp-presence:/1", undefined);
  const updates = () => frames.filter(({ method }) => method === "presence/update").map(({ params }) => params);
  for (let second = 0; second < 10; second += 1) {
    presence.setEditing({ requestId: "r", questionId: "q" });
    context.mock.timers.tick(1_000);
  }
  assert.equal(updates().filter(({ editing }) => editing).length, 2);
  presence.setEditing(undefined);
  presence.setIdle(true);
  assert.deepEqual(updates().at(-1), { channel: "ahp-presence:/1", idle: true });
  presence.close();
});

// Limits

test("more unconfirmed actions than the limit are refused", () => {
  const subscriptions = new Subscriptions(client(), new JsonRpcClient(), () => 7);
  const mirror = subscriptions.watch(SESSION);
  const dispatch = (seq) => subscriptions.dispatch(mirror, new Pending(seq, rename("x"), 1, () => {}));
  for (let seq = 1; seq <= PENDING_LIMIT; seq += 1) dispatch(seq);
  assert.throws(() => dispatch(0), { code: "tooMany" });
  assert.equal(mirror.pending.length, PENDING_LIMIT);
});

test("the size of an action is limited by its bytes, as the host counts them", () => {
  const { frames, protocol, mirror } = connected();
  const { subscriptions } = protocol;
  const dispatch = (/** @type {string} */ title) =>
    subscriptions.dispatch(mirror, new Pending(1, rename(title), 1, () => {}));
  dispatch("");
  const room = FRAME_BYTES - JSON.stringify(frames.at(-1)).length;
  dispatch("é".repeat(Math.floor(room / 2)));
  assert.equal(mirror.pending.length, 2);
  assert.throws(() => dispatch("é".repeat(Math.floor(room / 2) + 1)), { code: "tooLarge" });
  assert.throws(() => dispatch("x".repeat(room + 1)), { code: "tooLarge" });
  assert.equal(mirror.pending.length, 2);
});

// The status of the connection

test("while it is live, the number of waiting edits is counted but not reported", (context) => {
  context.mock.timers.enable({ apis: ["Date", "setTimeout"] });
  const protocol = Object.assign(new Events(), { isLive: true, isKnown: true });
  const connection = Object.assign(new Events(), { isWanted: true, failures: 0, credential: {} });
  let waiting = 0;
  const status = new ConnectionStatus(protocol, connection, () => waiting);
  const reported = [];
  status.on("change", ({ text }) => reported.push(text));
  status.update();
  for (waiting of [1, 0, 1]) {
    status.update();
    assert.equal(status.status.waiting, waiting);
  }
  assert.deepEqual(reported, ["live"]);
  protocol.isLive = false;
  status.update();
  assert.deepEqual(reported, ["live", "reconnecting, 1 waiting"]);
});

// Own actions

test("an echo is recognized whatever metadata the host adds", () => {
  const value = { kind: "text", value: "x" };
  const sent = { type: "session/inputAnswerChanged", requestId: "r", questionId: "q" };
  const mine = { ...sent, answer: { state: "draft", value } };
  const back = { ...sent, answer: { state: "draft", value, _meta: { at: 1 } } };
  assert.ok(isEcho(mine, back));
  assert.ok(!isEcho(mine, sent));
  const restored = { ...sent, answer: { state: "submitted", value, _meta: { at: 1 } } };
  assert.ok(isEcho(sent, restored), "a cleared draft comes back as what it covered");
  assert.ok(!isEcho(sent, { ...restored, questionId: "other" }));
  const done = { type: "session/inputCompleted", requestId: "r", response: "accept" };
  assert.ok(isEcho({ ...done, answers: { q: mine.answer } }, { ...done, answers: { q: back.answer } }));
  assert.ok(isEcho({ ...done, _meta: { reviewed: { content: {} } } }, done));
});

test("a snapshot shows what arrived; the rest is repeated if that is idempotent", () => {
  const value = { kind: "text", value: "x" };
  const held = state({
    turns: [{ id: "t", state: "cancelled" }],
    queuedMessages: [{ id: "m", message: { text: "hi" } }],
    inputRequests: [{ id: "r", answers: { q: { state: "draft", value, _meta: {} } } }],
  });
  const cases = [
    [{ type: "session/turnStarted", turnId: "t" }, "done"],
    [{ type: "session/turnStarted", turnId: "u" }, "repeat"],
    [{ type: "session/turnCancelled", turnId: "t" }, "done"],
    [{ type: "session/truncated", turnId: "t" }, "done"],
    [{ type: "session/truncated", turnId: "s" }, "unknown"],
    [{ type: "session/pendingMessageSet", id: "m", message: { text: "hi" } }, "done"],
    [{ type: "session/pendingMessageSet", id: "n", message: { text: "hi" } }, "unknown"],
    [{ type: "session/pendingMessageRemoved", id: "n" }, "done"],
    [{ type: "session/pendingMessageRemoved", id: "m" }, "repeat"],
    [{ type: "session/inputAnswerChanged", requestId: "r", questionId: "q", answer: { state: "draft", value } }, "done"],
    [{ type: "session/inputAnswerChanged", requestId: "r", questionId: "q" }, "repeat"],
    [{ type: "session/titleChanged", title: "x" }, "repeat"],
  ];
  for (const [action, outcome] of cases) assert.equal(outcomeIn(held, action), outcome, action.type);
});

// Fields

/** A field of a session that can send, and how what it sends last has failed. */
function openField() {
  const sent = [];
  const questions = Object.assign(new Events(), {
    uri: SESSION,
    outbox: { dispatchDraft: (_, failed) => sent.push(failed) },
    storage: new BrowserStorage(new MemoryStorage(), "tab", "scope"),
    typing: { at() {}, isAt: () => false },
    question: () => ({ id: "q", kind: "text", message: "Where to?" }),
    canSendDrafts: () => true,
  });
  const field = new DraftField(questions, "r", "q", undefined);
  return { field, fails: (code) => sent.at(-1)(new ClientError(code, "no")) };
}

const draft = (value) => ({ state: "draft", value: { kind: "text", value } });

test("a draft that was not delivered over someone else's is reported as a conflict", () => {
  const { field, fails } = openField();
  field.edit(draft("by boat").value);
  field.flush();
  field.received(draft("by train"));
  const reported = [];
  field.on("change", () => reported.push(field.phase));
  fails("lost");
  assert.deepEqual(reported, ["contested"]);
});

test("a text that was replaced is offered until it comes back, and is one's own then", () => {
  const { field } = openField();
  field.edit(draft("by boat").value);
  field.flush();
  field.received(draft("by boat"), 1);
  field.received({ ...draft("by train"), _meta: { by: { id: "ben", name: "Ben" } } });
  assert.equal(field.alternative.kind, "replaced");
  assert.equal(field.isOwn, false);
  field.received(draft("by boat"));
  assert.equal(field.alternative, undefined);
  assert.equal(field.isOwn, true);
});

// Storage

const text = (message, at = Date.now()) => ({
  session: SESSION, at, questionId: "q", kind: "text", message, value: { kind: "text", value: message },
});

test("stored texts are limited in time and number", () => {
  const storage = new MemoryStorage();
  const kept = new BrowserStorage(storage, "tab", "me");
  kept.putText(text("old", Date.now() - 8 * DAY));
  assert.equal(kept.textFor(SESSION, { id: "q", kind: "text", message: "old" }), undefined);
  for (let n = 0; n < 230; n += 1) kept.putText(text(`n${n}`, Date.now() - 1000 + n));
  assert.equal(storage.length, 200);
  assert.equal(kept.textFor(SESSION, { id: "x", kind: "text", message: "n0" }), undefined);
  assert.equal(kept.textFor(SESSION, { id: "x", kind: "text", message: "n229" }).value.value, "n229");
  assert.equal(kept.textFor("ahp-session:/other", { id: "q", kind: "text", message: "n229" }), undefined);
  assert.equal(kept.textFor(SESSION, { id: "q", kind: "number", message: "n229" }), undefined);
});

test("stored actions expire after a day", () => {
  const kept = new BrowserStorage(new MemoryStorage(), "tab", "me");
  kept.putAction({ session: SESSION, seq: 2, at: Date.now(), action: rename("x") });
  kept.putAction({ session: SESSION, seq: 1, at: Date.now() - 2 * DAY, action: rename("y") });
  assert.deepEqual(kept.actions(SESSION).map(({ seq }) => seq), [2]);
});

test("entries of one token are not sent with another", () => {
  const storage = new MemoryStorage();
  const [mine, others] = ["a", "b"].map((token) => new Credential({ url: "ws://h/ahp", token }).scope);
  new BrowserStorage(storage, "tab", mine).putAction({ session: SESSION, seq: 1, at: Date.now(), action: rename("x") });
  assert.deepEqual([...new BrowserStorage(storage, "tab", others).sessions], []);
  assert.deepEqual([...new BrowserStorage(storage, "tab", mine).sessions], [SESSION]);
  const kept = new BrowserStorage(storage, "tab", mine);
  assert.deepEqual([kept.moveTo(mine), kept.moveTo(others)], [false, true]);
  assert.deepEqual([...new BrowserStorage(storage, "tab", mine).sessions], [], "unless it takes its place");
  assert.deepEqual(kept.actions(SESSION).map(({ seq }) => seq), [1]);
});

test("drafts of an inaccessible session are stored as texts", () => {
  const kept = new BrowserStorage(new MemoryStorage(), "tab", "me");
  const answer = { state: "draft", value: { kind: "text", value: "Leeks" } };
  const question = { kind: "text", message: "What is it called?" };
  kept.putDraft({ session: SESSION, requestId: "r", questionId: "q", at: Date.now(), answer, ...question });
  kept.forget(SESSION);
  assert.deepEqual([...kept.sessions], []);
  assert.equal(kept.textFor(SESSION, { id: "q", ...question }).value.value, "Leeks");
});

test("stored texts are dropped first when storage is full", (context) => {
  const warned = context.mock.method(console, "warn", () => {});
  const storage = new MemoryStorage();
  const put = storage.setItem.bind(storage);
  storage.setItem = (key, value) => {
    if (storage.length >= 2 && storage.getItem(key) === null) throw new Error("full");
    put(key, value);
  };
  const kept = new BrowserStorage(storage, "tab", "me");
  kept.putText(text("one"));
  kept.putText(text("two"));
  kept.putAction({ session: SESSION, seq: 1, at: Date.now(), action: rename("x") });
  assert.deepEqual([kept.hasRoom, kept.actions(SESSION).length, storage.length], [true, 1, 1]);
  for (const seq of [2, 3, 4]) kept.putAction({ session: SESSION, seq, at: Date.now(), action: rename("x") });
  assert.deepEqual([kept.hasRoom, warned.mock.callCount()], [false, 1]);
});

// Credentials

const AT = "ws://h/ahp";
const TOKEN = "session-server.token";

/** A tab and a browser, with what they have kept. */
function stores({ tab, browser } = {}) {
  const [ofTab, ofBrowser] = [new MemoryStorage(), new MemoryStorage()];
  if (tab) ofTab.setItem(TOKEN, tab);
  if (browser) ofBrowser.setItem(TOKEN, browser);
  const kept = () => [ofTab.getItem(TOKEN), ofBrowser.getItem(TOKEN)];
  return { ofTab, ofBrowser, kept };
}

const no = (words) => new ClientError("unauthorized", words);

test("the token of the address comes first and is stored once accepted", () => {
  const { ofTab, ofBrowser, kept } = stores();
  const credential = new Credential({ url: AT, token: "given", session: "#/" }, ofTab, ofBrowser);
  assert.deepEqual(credential.subprotocols, ["ahp", "bearer.given"]);
  assert.equal(credential.address, AT);
  assert.deepEqual(kept(), ["given", null]);
  credential.accepted();
  assert.deepEqual(kept(), ["given", "given"]);
  assert.equal(credential.hasOther, false);
});

test("a link does not replace the stored token, unless a person chooses that", () => {
  const { ofTab, ofBrowser, kept } = stores({ browser: "owner" });
  const credential = new Credential({ url: AT, token: "guest", session: "#/" }, ofTab, ofBrowser);
  credential.accepted();
  assert.deepEqual([...kept(), credential.hasOther], ["guest", "owner", true]);
  credential.useOther();
  assert.deepEqual([credential.token, ...kept(), credential.hasOther], ["owner", "owner", "owner", false]);
  const again = new Credential({ url: AT, token: "guest", session: "#/" }, ofTab, ofBrowser);
  again.accepted();
  again.store();
  assert.deepEqual([...kept(), again.hasOther], ["guest", "guest", false]);
});

test("a link to a session is stored for that session only", (context) => {
  const { ofTab, ofBrowser, kept } = stores({ browser: "owner" });
  const link = { url: AT, token: "guest", session: "#/s/a%2Fb/q" };
  new Credential(link, ofTab, ofBrowser).accepted();
  assert.deepEqual(kept(), ["guest", "owner"]);
  context.after(() => delete globalThis.location);
  for (const [hash, tried] of [["#/s/a%2Fb", ["owner", "guest"]], ["#/s/c", ["owner"]]]) {
    globalThis.location = { hash };
    const { ofBrowser: browser } = stores({ browser: "owner" });
    browser.setItem(`${TOKEN}:a%2Fb`, "guest");
    const newTab = new Credential({ url: AT }, new MemoryStorage(), browser);
    assert.equal(newTab.token, undefined);
    const seen = [];
    while (newTab.refused(no("no")) === undefined) seen.push(newTab.token);
    assert.deepEqual(seen, tried);
    assert.equal(browser.getItem(`${TOKEN}:a%2Fb`), hash === "#/s/c" ? "guest" : null);
  }
});

test("forgetting the token in use keeps the others", () => {
  const { ofTab, ofBrowser, kept } = stores({ browser: "owner" });
  const credential = new Credential({ url: AT, token: "guest", session: "#/s/x" }, ofTab, ofBrowser);
  credential.accepted();
  credential.forget();
  assert.deepEqual([...kept(), ofBrowser.getItem(`${TOKEN}:x`)], [null, "owner", null]);
});

test("a pasted token replaces the stored one once accepted", () => {
  const { ofTab, ofBrowser, kept } = stores({ browser: "older" });
  const credential = new Credential({ url: AT }, ofTab, ofBrowser);
  credential.use("wrong");
  assert.equal(credential.refused(no("wrong")), undefined);
  credential.accepted();
  assert.deepEqual(kept(), [null, "older"]);
  credential.use("newer");
  credential.accepted();
  assert.deepEqual(kept(), ["newer", "newer"]);
});

test("a refused token is forgotten, and every other is tried once", () => {
  const { ofTab, ofBrowser, kept } = stores({ tab: "old", browser: "other" });
  const credential = new Credential({ url: AT }, ofTab, ofBrowser);
  assert.equal(credential.token, "old");
  assert.equal(credential.refused(no("old has expired")), undefined);
  assert.deepEqual(credential.subprotocols, []);
  assert.equal(credential.refused(no("a token is needed")), undefined);
  assert.equal(credential.token, "other");
  assert.equal(credential.refused(no("other is unknown")).message, "other is unknown");
  assert.deepEqual([credential.problem, credential.token, ...kept()], ["refused", undefined, null, null]);
});

test("without any token, one is needed", () => {
  const { ofTab, ofBrowser } = stores();
  const credential = new Credential({ url: AT }, ofTab, ofBrowser);
  assert.equal(credential.refused(no("a token is needed")).message, "a token is needed");
  assert.equal(credential.problem, "needed");
  credential.use(" http://h:1/?tkn=a%2Db&x=1#/s/x ");
  assert.deepEqual([credential.token, credential.problem], ["a-b", undefined]);
  credential.use("not a tök€n, (at all) %zz");
  assert.match(credential.token, /^[\w!-]+$/, "it can be sent, and is refused");
  credential.use("plain");
  assert.equal(credential.token, "plain");
  credential.forget();
  assert.deepEqual([credential.token, ofTab.getItem(TOKEN)], [undefined, null]);
});

test("a token that is revoked while in use is not replaced by another", () => {
  const { ofTab, ofBrowser, kept } = stores({ tab: "guest", browser: "guest" });
  const credential = new Credential({ url: AT }, ofTab, ofBrowser);
  credential.accepted();
  credential.revoked(no("It was revoked."));
  assert.deepEqual([credential.problem, ...kept()], ["refused", null, null]);
});

// Time

test("the timestamp furthest ahead sets the host's clock", (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const clock = new HostClock();
  assert.equal(clock.now(), 1_000_000, "without a word, ours has to do");
  for (const at of [1_300_000, 1_300_900, 1_300_200, undefined, NaN]) clock.update(at);
  assert.equal(clock.now(), 1_300_900);
  clock.lost();
  clock.update(1_000_500);
  assert.equal(clock.now(), 1_000_500, "on another connection it may be another clock");
});

test("full or broken storage does no harm", (context) => {
  context.mock.method(console, "warn", () => {});
  const storage = new MemoryStorage();
  storage.setItem("session-server:kept:me:draft[]", "{not json");
  const kept = new BrowserStorage(storage, "tab", "me");
  assert.deepEqual([...kept.sessions], []);
  assert.equal(storage.length, 0);
  storage.setItem = () => { throw new Error("full"); };
  kept.putText(text("x"));
});

// Tabs

test("a tab keeps its id, and a copy gets another", () => {
  const storage = new MemoryStorage();
  const tab = new Tab(storage);
  tab.nextSeq();
  tab.save();
  const again = new Tab(storage);
  assert.deepEqual([again.id, again.nextSeq()], [tab.id, 2]);
  const copy = new Tab(storage);
  assert.notEqual(copy.id, tab.id);
  for (const each of [tab, again, copy]) each.close();
});

test("open tabs find each other", async () => {
  const one = new Tab(undefined);
  const other = new Tab(undefined);
  assert.deepEqual([...(await other.others)], [one.id]);
  other.close();
  const third = new Tab(undefined);
  assert.deepEqual([...(await third.others)], [one.id]);
  one.close();
  third.close();
});

// Small things

test("ids are letters and digits, and unique", () => {
  const ids = new Set(Array.from({ length: 1000 }, newId));
  assert.equal(ids.size, 1000);
  assert.match([...ids][0], /^[0-9a-z]{20}$/);
});

test("the address never contains the token", () => {
  const door = { url: "wss://h/x/ahp", token: "t" };
  assert.deepEqual(endpointOf({ url: "https://h/x/ahp", token: "t" }), door);
  assert.deepEqual(endpointOf({ url: "https://h/x/ahp?tkn=t" }), door);
  assert.equal(endpointOf({ url: "http://h/ahp" }).url, "ws://h/ahp");
});

test("a listener that throws does not affect the others", (context) => {
  context.mock.method(globalThis, "setTimeout", () => {});
  const events = new Events();
  const heard = [];
  events.on("x", () => { throw new Error("mine"); });
  const stop = events.on("x", (value) => heard.push(value));
  events.emit("x", 1);
  stop();
  events.emit("x", 2);
  assert.deepEqual(heard, [1]);
});

test("a pattern is checked in the page only if it is safe", () => {
  assert.ok(failsPattern("^[A-Z]{3}$", "abc") && !failsPattern("^[A-Z]{3}$", "ABC"));
  assert.ok(failsPattern("^v\\d+\\.\\d+$", "v1") && !failsPattern("\\d", "a1b"));
  for (const wild of ["^(a+)+$", "^(a|a)*$", "^(a)\\1$", "^(?=a)b$", "^a*a*a*$", "(", "^(a{2}){9}$"])
    assert.ok(!failsPattern(wild, "b"), wild);
  assert.ok(!failsPattern("^a$", "b".repeat(501)), "a long text");
});
