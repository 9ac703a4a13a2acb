/**
 * The host as views hold it: how the connection stands, its sessions, and what to ask of it.
 */

/**
 * @import {
 *   ActionEnvelope, Author, FetchTurnsResult, ModelSelection, RootState, SessionSummary,
 * } from "./types.d.ts"
 */
/** @import {ConnectionOptions} from "./connection.js" */
/** @import {KeptStorage} from "./kept.js" */
/** @import {Listed} from "./sessions.js" */
/** @import {Status} from "./standing.js" */
/** @import {TabStorage} from "./tab.js" */
import { HostClock, timeAt } from "./clock.js";
import { ROOT } from "./channels.js";
import { Connection } from "./connection.js";
import { Credential } from "./credential.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { newId } from "./ids.js";
import { Kept } from "./kept.js";
import { doorOf, followPage, localStorageOr, tabStorage } from "./page.js";
import { Protocol } from "./protocol.js";
import { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { Standing } from "./standing.js";
import { Tab } from "./tab.js";

/**
 * @typedef {{
 *   url?: string, token?: string, name?: string, storage?: KeptStorage, tabStorage?: TabStorage,
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
  /** @type {Author | undefined} who the host says we are, once we have done something */ me;
  #storage;
  #tab;
  #credential;
  #kept;
  #protocol;
  #connection;
  #sessions;
  #standing;
  #clock = new HostClock();
  #isSomebodyElse = false;
  /** @type {Map<string, { session: Session, users: number }>} */ #open = new Map();
  /** @type {(() => void) | undefined} */ #stopFollowing;

  /** @param {HostOptions} [options] */
  constructor(options = {}) {
    super();
    const ofTab = options.tabStorage ?? tabStorage();
    this.#storage = options.storage ?? localStorageOr();
    this.#tab = new Tab(ofTab);
    this.#credential = new Credential(doorOf(options), ofTab, this.#storage);
    this.#kept = new Kept(this.#storage, this.#tab.id, this.#credential.scope);
    this.#protocol = new Protocol(this.#tab, Date.now);
    this.#connection = new Connection(this.#protocol, this.#credential, options.connection);
    this.#sessions = new Sessions(this.#protocol);
    this.#standing = new Standing(this.#protocol, this.#connection, () => this.#waiting);
    this.name = options.name ?? this.#storage.getItem(NAME) ?? undefined;
    this.#protocol.isCalled(this.name);
    this.#relay();
    this.#followHost();
  }

  #followHost() {
    this.#credential.on("change", () => this.#goesAlong());
    this.#credential.on("taken", () => this.#letIn());
    this.#protocol.on("time", (at) => this.#clock.told(at));
    this.#protocol.on("lost", () => this.#clock.lost());
    this.#protocol.on("live", () => {
      void timeAt(this.#credential.address).then((at) => this.#clock.told(at));
    });
  }

  #relay() {
    const { root } = this.#protocol.channels;
    root.on("change", ({ after }) => {
      if (after) this.emit("root", after);
    });
    this.#sessions.on("change", (list) => this.emit("sessions", list));
    this.#sessions.on("summary", (listed) => this.emit("summary", listed));
    this.#standing.on("change", (status) => this.emit("status", status));
  }

  // Connection

  start() {
    this.#stopFollowing ??= followPage(this);
    this.#connection.start();
    void this.#deliverUnsent();
  }

  stop() {
    this.flush();
    this.#stopFollowing?.();
    this.#stopFollowing = undefined;
    this.#connection.stop();
    this.#tab.close();
  }

  /** The page goes, maybe for good. */
  hide() {
    this.flush();
    this.#connection.pause();
    this.#tab.put();
  }

  /** The page is back as it was, out of the browser's memory. */
  show() {
    this.#tab.taken();
    this.retry();
  }

  /** Now instead of later; also after having given up. */
  retry() {
    this.#connection.retry();
  }

  /** @returns {string | undefined} what we show at the door */
  get token() {
    return this.#credential.token;
  }

  /** @param {string} text - a token, or a link that holds one */
  useToken(text) {
    this.#credential.use(text);
    this.#connection.restart();
  }

  /** Whether this tab came by a link, and the browser keeps other access for new tabs. */
  get hasOtherToken() {
    return this.#credential.hasOther;
  }

  get isTokenKept() {
    return this.#credential.isKept;
  }

  /** This tab goes on with what the browser keeps. */
  useOtherToken() {
    this.#credential.useOther();
    this.#connection.restart();
  }

  /** New tabs use what this one does. */
  keepToken() {
    this.#credential.keep();
  }

  /** Goes on without, if the host lets us. */
  forgetToken() {
    this.#credential.forget();
    this.#connection.restart();
  }

  /** With another credential than before: what is not sent goes along. */
  #goesAlong() {
    if (this.#kept.moveTo(this.#credential.scope)) this.#isSomebodyElse = true;
  }

  #letIn() {
    if (!this.#isSomebodyElse) return;
    this.#isSomebodyElse = false;
    this.me = undefined;
    for (const { session } of this.#open.values()) session.recall();
    void this.#deliverUnsent();
  }

  /** What time it is at the host: deadlines are in its time, and our own clock may be wrong. */
  now() {
    return this.#clock.now();
  }

  /** Sends and keeps all that is left: the page may be gone the next moment. */
  flush() {
    for (const { session } of this.#open.values()) session.flush();
  }

  /** @param {boolean} isIdle */
  idle(isIdle) {
    for (const { session } of this.#open.values()) session.idle(isIdle);
  }

  get status() {
    return this.#standing.status;
  }

  get clientId() {
    return this.#tab.clientId;
  }

  get #waiting() {
    return [...this.#open.values()].reduce((sum, { session }) => sum + session.waiting, 0);
  }

  // What there is to see

  /** @returns {RootState | undefined} */
  get root() {
    return this.#protocol.channels.root.state;
  }

  /** @returns {readonly SessionSummary[] | undefined} */
  get sessions() {
    return this.#sessions.list;
  }

  /** @param {string} name */
  setName(name) {
    this.name = name.trim() || undefined;
    this.#rememberName();
    this.#protocol.isCalled(this.name);
    for (const { session } of this.#open.values()) session.called(this.name);
  }

  #rememberName() {
    try {
      if (this.name) this.#storage.setItem(NAME, this.name);
      else this.#storage.removeItem(NAME);
    } catch {
      // Where nothing can be kept, it lasts as long as the page.
    }
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
    const ground = { protocol: this.#protocol, tab: this.#tab, kept: this.#kept, name: this.name };
    const session = new Session(uri, ground);
    this.#open.set(uri, { session, users: 1 });
    session.onClose = () => this.#close(session);
    session.on("settled", () => this.#settled(session));
    session.on("change", ({ envelope }) => this.#meet(envelope));
    return session;
  }

  /** @param {Session} session */
  #close(session) {
    const entry = this.#open.get(session.uri);
    if (entry?.session !== session) return;
    entry.users -= 1;
    this.#settled(session);
  }

  /**
   * A session that nobody looks at any more stays until all that was done in it has arrived.
   *
   * @param {Session} session
   */
  #settled(session) {
    const entry = this.#open.get(session.uri);
    if (entry?.session === session && entry.users <= 0 && session.waiting === 0) {
      this.#open.delete(session.uri);
      session.leave();
    }
    this.#standing.look();
  }

  /** @param {ActionEnvelope | undefined} envelope */
  #meet(envelope) {
    if (envelope?.origin?.clientId === this.clientId) this.me = envelope._meta?.by ?? this.me;
  }

  /** What was left by this tab before it was loaded again, or by tabs that are gone, goes out. */
  async #deliverUnsent() {
    await this.#tab.others;
    for (const uri of this.#kept.sessions) {
      const session = this.open(uri);
      void session.ready.then(() => session.close());
    }
  }

  // Commands

  /**
   * Any command; it waits for a connection if there is none.
   *
   * @param {string} method
   * @param {object} params
   * @returns {Promise<any>}
   */
  async call(method, params) {
    await this.#connected();
    return new Promise((resolve, reject) => {
      this.#protocol.exchange.ask(method, params, { resolve, reject });
    });
  }

  /**
   * @param {{ provider?: string, uri?: string, model?: ModelSelection, config?: object }} [about]
   * @returns {Promise<string>} its URI
   */
  async createSession({ provider, uri = `ahp-session:/${newId()}`, model, config } = {}) {
    await this.call("createSession", { channel: uri, provider, model, config });
    return uri;
  }

  /** @param {string} uri */
  async disposeSession(uri) {
    await this.call("disposeSession", { channel: uri });
  }

  /**
   * @param {string} uri
   * @param {{ before?: string, limit?: number }} [page]
   * @returns {Promise<FetchTurnsResult>}
   */
  fetchTurns(uri, { before, limit } = {}) {
    return this.call("fetchTurns", { channel: uri, before, limit });
  }

  async ping() {
    await this.call("ping", { channel: ROOT });
  }

  /** @returns {Promise<void>} */
  #connected() {
    return new Promise((resolve, reject) => {
      const look = () => {
        const { phase, error, words } = this.status;
        if (this.#protocol.isLive) resolve();
        else if (phase === "closed") reject(error ?? new WireError("closed", words));
        else return false;
        return true;
      };
      if (look()) return;
      const stop = this.on("status", () => {
        if (look()) stop();
      });
    });
  }
}
