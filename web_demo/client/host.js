/** The host as views use it: the connection's status, the sessions, and commands. */

/** @import { Status } from "./connection/connection-status.js" */
/** @import { ConnectionOptions } from "./connection/connection.js" */
/** @import { Listed } from "./session-list.js" */
/** @import { StorageArea } from "./storage.js" */
/** @import { TabStorage } from "./tab-identity.js" */
/** @import { ActionEnvelope, Author, RootState, SessionSummary } from "./types.d.ts" */
import { endpointOf, followLifecycle, localArea, tabArea } from "./browser.js";
import { HostClock, ConnectionStatus, timeAt } from "./connection/connection-status.js";
import { Connection } from "./connection/connection.js";
import { Credential } from "./connection/credential.js";
import { ClientError } from "./errors.js";
import { Events } from "./events.js";
import { Protocol } from "./connection/protocol.js";
import { Sessions } from "./session-list.js";
import { Session } from "./session.js";
import { BrowserStorage } from "./storage.js";
import { newId, Tab } from "./tab-identity.js";

/**
 * @typedef {{
 *   url?: string, token?: string, name?: string, storage?: StorageArea, tabStorage?: TabStorage,
 *   connection?: ConnectionOptions,
 * }} HostOptions
 */

const NAME = "session-server:name";

/**
 * @extends {Events<{
 *   status: Status, root: RootState, sessions: readonly SessionSummary[], summary: Listed,
 * }>}
 */
export class Host extends Events {
  /** @type {Author | undefined} who the host says we are, known after our first action */ me;
  #area;
  #tab;
  #credential;
  #storage;
  #protocol;
  #connection;
  #sessions;
  #status;
  #clock = new HostClock();
  #hasNewCredential = false;
  /** @type {Map<string, { session: Session, users: number }>} */ #open = new Map();
  /** @type {(() => void) | undefined} */ #stopLifecycle;

  /** @param {HostOptions} [options] */
  constructor(options = {}) {
    super();
    const tabStorage = options.tabStorage ?? tabArea();
    this.#area = options.storage ?? localArea();
    this.#tab = new Tab(tabStorage);
    this.#credential = new Credential(endpointOf(options), tabStorage, this.#area);
    this.#storage = new BrowserStorage(this.#area, this.#tab.id, this.#credential.scope);
    this.#protocol = new Protocol(this.#tab, Date.now);
    this.#connection = new Connection(this.#protocol, this.#credential, options.connection);
    this.#sessions = new Sessions(this.#protocol);
    this.#status = new ConnectionStatus(this.#protocol, this.#connection, () => this.#waiting);
    this.name = options.name ?? this.#area.getItem(NAME) ?? undefined;
    this.#protocol.setName(this.name);
    this.#listen();
  }

  #listen() {
    this.#credential.on("change", () => this.#credentialChanged());
    this.#credential.on("accepted", () => this.#credentialAccepted());
    this.#protocol.on("time", (at) => this.#clock.update(at));
    this.#protocol.on("lost", () => this.#clock.lost());
    this.#protocol.on("live", () => {
      void timeAt(this.#credential.address).then((at) => this.#clock.update(at));
    });
    this.#protocol.subscriptions.root.on("change", ({ after }) => {
      if (after) this.emit("root", after);
    });
    this.#sessions.on("change", (list) => this.emit("sessions", list));
    this.#sessions.on("summary", (listed) => this.emit("summary", listed));
    this.#status.on("change", (status) => this.emit("status", status));
  }

  // Connection

  start() {
    this.#stopLifecycle ??= followLifecycle(this);
    this.#connection.start();
    void this.#sendUnsent();
  }

  stop() {
    this.flush();
    this.#stopLifecycle?.();
    this.#stopLifecycle = undefined;
    this.#connection.stop();
    this.#tab.close();
  }

  /** The page is being hidden, maybe for good. */
  hide() {
    this.flush();
    this.#connection.pause();
    this.#tab.save();
  }

  /** The page is back from the back/forward cache. */
  show() {
    this.#tab.resume();
    this.retry();
  }

  /** Reconnects now, also after a fatal error. */
  retry() {
    this.#connection.retry();
  }

  /** @returns {string | undefined} the token in use */
  get token() {
    return this.#credential.token;
  }

  /** @param {string} text - a token, or a link that contains one */
  useToken(text) {
    this.#credential.use(text);
    this.#connection.restart();
  }

  /** Whether this tab uses a link, while the browser has stored another token for new tabs. */
  get hasOtherToken() {
    return this.#credential.hasOther;
  }

  get isTokenStored() {
    return this.#credential.isStored;
  }

  /** This tab switches to the token that the browser has stored. */
  useOtherToken() {
    this.#credential.useOther();
    this.#connection.restart();
  }

  /** New tabs use the token of this one. */
  storeToken() {
    this.#credential.store();
  }

  /** Continues without a token, if the host allows that. */
  forgetToken() {
    this.#credential.forget();
    this.#connection.restart();
  }

  /** Another token than before: what is not sent yet moves to it. */
  #credentialChanged() {
    if (this.#storage.moveTo(this.#credential.scope)) this.#hasNewCredential = true;
  }

  #credentialAccepted() {
    if (!this.#hasNewCredential) return;
    this.#hasNewCredential = false;
    this.me = undefined;
    for (const { session } of this.#open.values()) session.restoreActions();
    void this.#sendUnsent();
  }

  /** The host's time, which deadlines are in; our own clock may be wrong. */
  now() {
    return this.#clock.now();
  }

  /** Sends and saves everything: the page may be gone the next moment. */
  flush() {
    for (const { session } of this.#open.values()) session.flush();
  }

  /** @param {boolean} isIdle */
  idle(isIdle) {
    for (const { session } of this.#open.values()) session.idle(isIdle);
  }

  get status() {
    return this.#status.status;
  }

  /** Whether it is connected. */
  get isLive() {
    return this.#protocol.isLive;
  }

  get clientId() {
    return this.#tab.clientId;
  }

  get #waiting() {
    return [...this.#open.values()].reduce((sum, { session }) => sum + session.waiting, 0);
  }

  // State

  /** @returns {RootState | undefined} */
  get root() {
    return this.#protocol.subscriptions.root.state;
  }

  /**
   * @param {string} provider
   * @returns {string | undefined} its display name
   */
  agentName(provider) {
    return this.root?.agents.find((agent) => agent.provider === provider)?.displayName;
  }

  /** @returns {readonly SessionSummary[] | undefined} */
  get sessions() {
    return this.#sessions.list;
  }

  /** @param {string} name */
  setName(name) {
    this.name = name.trim() || undefined;
    try {
      if (this.name) this.#area.setItem(NAME, this.name);
      else this.#area.removeItem(NAME);
    } catch {
      // Without storage it lasts until the page closes.
    }
    this.#protocol.setName(this.name);
    for (const { session } of this.#open.values()) session.setName(this.name);
  }

  /**
   * Each `open` needs a `close`.
   *
   * @param {string} uri
   * @returns {Session}
   */
  open(uri) {
    const known = this.#open.get(uri);
    if (known && known.session.phase !== "gone") {
      known.users += 1;
      return known.session;
    }
    const services = { protocol: this.#protocol, tab: this.#tab, storage: this.#storage, name: this.name };
    const session = new Session(uri, services);
    this.#open.set(uri, { session, users: 1 });
    session.onClose = () => this.#close(session);
    session.on("progress", () => this.#progressed(session));
    session.on("change", ({ envelope }) => this.#learnAuthor(envelope));
    return session;
  }

  /** @param {Session} session */
  #close(session) {
    const entry = this.#open.get(session.uri);
    if (entry?.session !== session) return;
    entry.users -= 1;
    this.#progressed(session);
  }

  /**
   * A session that no view uses stays open until everything that was done in it is confirmed.
   *
   * @param {Session} session
   */
  #progressed(session) {
    const entry = this.#open.get(session.uri);
    if (entry?.session === session && entry.users <= 0 && session.waiting === 0) {
      this.#open.delete(session.uri);
      session.leave();
    }
    this.#status.update();
  }

  /** @param {ActionEnvelope | undefined} envelope */
  #learnAuthor(envelope) {
    if (envelope?.origin?.clientId === this.clientId) this.me = envelope._meta?.by ?? this.me;
  }

  /** Sends what this tab had not sent before a reload, and what closed tabs left. */
  async #sendUnsent() {
    await this.#tab.others;
    for (const uri of this.#storage.sessions) {
      const session = this.open(uri);
      void session.ready.then(() => session.close());
    }
  }

  // Commands

  /**
   * Any command; it waits for the connection.
   *
   * @param {string} method
   * @param {object} params
   * @returns {Promise<any>}
   */
  async call(method, params) {
    await this.#connected();
    return new Promise((resolve, reject) => {
      this.#protocol.rpc.request(method, params, { resolve, reject });
    });
  }

  /**
   * @param {{ provider?: string | undefined, uri?: string }} [about]
   * @returns {Promise<string>} its URI
   */
  async createSession({ provider, uri = `ahp-session:/${newId()}` } = {}) {
    await this.call("createSession", { channel: uri, provider });
    return uri;
  }

  /**
   * A request to the HTTP API, relative to the page.
   *
   * @param {string} path
   * @param {object} [body] - posted as JSON
   * @returns {Promise<any>}
   */
  async request(path, body) {
    const { token } = this;
    const response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers: {
        ...(body && { "Content-Type": "application/json" }),
        ...(token && { Authorization: `Bearer ${token}` }),
      },
      body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok)
      throw new Error(answer.detail ?? answer.title ?? `The host answered ${response.status}.`);
    return answer;
  }

  /** @returns {Promise<void>} */
  #connected() {
    return new Promise((resolve, reject) => {
      const check = () => {
        const { phase, error, text } = this.status;
        if (this.#protocol.isLive) resolve();
        else if (phase === "closed") reject(error ?? new ClientError("closed", text));
        else return false;
        return true;
      };
      if (check()) return;
      const stop = this.on("status", () => {
        if (check()) stop();
      });
    });
  }
}
