/**
 * What must survive a closed page until the host has it: one entry each in the browser's storage,
 * so that tabs do not overwrite each other. Without storage it lasts until the page closes.
 *
 * drafts   unconfirmed drafts, with the answer they are based on
 * actions  unconfirmed actions
 * texts    what was typed for a question and not included, offered when it is asked again
 */

/** @import { Action, Answer, Author, Question, Value } from "./types.d.ts" */

const PREFIX = "session-server:kept:";
const HOUR = 3_600_000;
const TEXT_LIMIT = 200;
const LIFETIMES = { draft: 7 * 24 * HOUR, action: 24 * HOUR, text: 7 * 24 * HOUR };

/** @typedef {keyof typeof LIFETIMES} Kind */
/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} StorageArea */
/** @typedef {{ session: string, at: number, tab: string }} Entry */

/**
 * @typedef {Entry & {
 *   requestId: string, questionId: string, answer?: Answer, base?: Answer,
 *   kind?: string, message?: string, sent?: readonly (Answer | null)[],
 * }} StoredDraft
 * @typedef {Entry & { seq: number, action: Action }} StoredAction
 * @typedef {Entry & {
 *   requestId: string, questionId: string, kind: string, message: string, value: Value, by?: Author,
 * }} StoredText
 */

export class BrowserStorage {
  /** Whether there is space: otherwise unsent work is lost with the page. */
  hasRoom = true;
  #storage;
  #prefix;

  /**
   * @param {StorageArea} storage
   * @param {string} tab
   * @param {string} scope - which token it belongs to: it is not sent with another one
   */
  constructor(storage, tab, scope) {
    this.#storage = storage;
    this.#prefix = prefixOf(scope);
    this.tab = tab;
  }

  /**
   * The token was replaced by another one: the entries move to it.
   *
   * @param {string} scope
   * @returns {boolean} whether it is another token
   */
  moveTo(scope) {
    const old = this.#prefix;
    this.#prefix = prefixOf(scope);
    if (old === this.#prefix) return false;
    for (const key of this.#keys(old)) this.#move(key, this.#prefix + key.slice(old.length));
    return true;
  }

  /** @param {string} from @param {string} to */
  #move(from, to) {
    const entry = this.#storage.getItem(from);
    this.#storage.removeItem(from); // first: there may be no space for both
    if (entry !== null) this.#write(to, entry);
  }

  // Drafts

  /** @param {Omit<StoredDraft, "tab">} draft */
  putDraft(draft) {
    this.#put("draft", { ...draft, tab: this.tab }, [draft.requestId, draft.questionId]);
  }

  /** @param {Pick<StoredDraft, "session" | "requestId" | "questionId"> & { tab?: string }} draft */
  dropDraft({ session, requestId, questionId, tab = this.tab }) {
    this.#remove("draft", { session, tab }, [requestId, questionId]);
  }

  /** @param {string} session @returns {StoredDraft[]} */
  drafts(session) {
    return this.#all("draft", session);
  }

  // Actions

  /** @param {Omit<StoredAction, "tab">} action */
  putAction(action) {
    this.#put("action", { ...action, tab: this.tab }, [action.seq]);
  }

  /** @param {Pick<StoredAction, "session" | "seq"> & { tab?: string }} action */
  dropAction({ session, seq, tab = this.tab }) {
    this.#remove("action", { session, tab }, [seq]);
  }

  /** @param {string} session @returns {StoredAction[]} */
  actions(session) {
    return /** @type {StoredAction[]} */ (this.#all("action", session)).sort((a, b) => a.seq - b.seq);
  }

  // Texts

  /** @param {Omit<StoredText, "tab">} text */
  putText(text) {
    this.#put("text", { ...text, tab: "" }, [text.kind, text.questionId, text.message]);
    const all = this.#all("text").sort((one, other) => one.at - other.at);
    for (const old of all.slice(0, -TEXT_LIMIT)) this.dropText(old);
  }

  /**
   * A draft whose question closed while the page was closed.
   *
   * @param {StoredDraft} draft
   */
  saveTextOf({ session, at, requestId, questionId, kind, message, answer }) {
    const value = answer && answer.state !== "skipped" ? answer.value : undefined;
    if (!value || kind === undefined || message === undefined) return;
    this.putText({ session, at, requestId, questionId, kind, message, value });
  }

  /** @param {Pick<StoredText, "session" | "kind" | "questionId" | "message">} text */
  dropText({ session, kind, questionId, message }) {
    this.#remove("text", { session, tab: "" }, [kind, questionId, message]);
  }

  /**
   * What was typed before for this question, or for one with the same text.
   *
   * @param {string} session
   * @param {Question} question
   * @returns {StoredText | undefined}
   */
  textFor(session, question) {
    const candidates = this.#all("text", session).filter((text) => text.kind === question.kind);
    return (
      candidates.find((text) => text.message === question.message) ??
      candidates.find((text) => text.questionId === question.id)
    );
  }

  // All

  /** The sessions with unsent work. */
  get sessions() {
    const unsent = [...this.#all("draft"), ...this.#all("action")];
    return new Set(unsent.map((entry) => entry.session));
  }

  /**
   * The session was removed, or is not accessible any more. Texts stay in case it comes back.
   *
   * @param {string} session
   */
  forget(session) {
    for (const draft of this.drafts(session)) {
      this.saveTextOf(draft);
      this.dropDraft(draft);
    }
    for (const action of this.actions(session)) this.dropAction(action);
  }

  /** @param {Kind} kind @param {Entry} entry @param {readonly (string | number)[]} name */
  #put(kind, entry, name) {
    this.#write(this.#key(kind, entry, name), JSON.stringify(entry));
  }

  /**
   * Without space, stored texts are dropped first: they are only offered, while the rest is unsent
   * work.
   *
   * @param {string} key
   * @param {string} text
   */
  #write(key, text) {
    let isWritten = this.#tryWrite(key, text);
    if (!isWritten) {
      for (const offered of this.#all("text")) this.dropText(offered);
      isWritten = this.#tryWrite(key, text);
    }
    if (!isWritten && this.hasRoom) console.warn("the browser's storage is full or blocked");
    this.hasRoom = isWritten;
  }

  /** @param {string} key @param {string} text */
  #tryWrite(key, text) {
    try {
      this.#storage.setItem(key, text);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * @param {Kind} kind
   * @param {{ session: string, tab: string }} entry
   * @param {readonly (string | number)[]} name
   */
  #remove(kind, entry, name) {
    this.#storage.removeItem(this.#key(kind, entry, name));
  }

  /**
   * @param {Kind} kind
   * @param {{ session: string, tab: string }} entry
   * @param {readonly (string | number)[]} name
   */
  #key(kind, { session, tab }, name) {
    return this.#prefix + kind + JSON.stringify([session, tab, ...name]);
  }

  /** @param {Kind} kind @param {string} [session] @returns {any[]} */
  #all(kind, session) {
    const entries = [];
    const which = session === undefined ? "" : `[${JSON.stringify(session)},`;
    for (const key of this.#keys(this.#prefix + kind + which)) {
      const entry = this.#read(key);
      if (!entry || Date.now() - entry.at > LIFETIMES[kind]) this.#storage.removeItem(key);
      else entries.push(entry);
    }
    return entries;
  }

  /** @param {string} prefix */
  #keys(prefix) {
    const { length } = this.#storage;
    const keys = Array.from({ length }, (_, index) => this.#storage.key(index));
    return keys.filter((key) => key !== null).filter((key) => key.startsWith(prefix));
  }

  /** @param {string} key @returns {Entry | undefined} */
  #read(key) {
    try {
      return JSON.parse(this.#storage.getItem(key) ?? "null") ?? undefined;
    } catch {
      return undefined;
    }
  }
}

/** @param {string} scope */
const prefixOf = (scope) => `${PREFIX}${scope}:`;

/** A replacement where there is no storage. */
export class MemoryStorage {
  /** @type {Map<string, string>} */
  #items = new Map();

  get length() {
    return this.#items.size;
  }

  /** @param {number} index */
  key(index) {
    return [...this.#items.keys()][index] ?? null;
  }

  /** @param {string} key */
  getItem(key) {
    return this.#items.get(key) ?? null;
  }

  /** @param {string} key @param {string} value */
  setItem(key, value) {
    this.#items.set(key, value);
  }

  /** @param {string} key */
  removeItem(key) {
    this.#items.delete(key);
  }
}
