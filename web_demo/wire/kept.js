/**
 * What must not be lost when a page goes before the host has it: in the browser's storage, one
 * entry per thing, so that tabs do not step on each other. Without storage, for as long as the page
 * lives.
 *
 * drafts   what a field shows and the host has not confirmed, with what both had before
 * actions  what was done and is not confirmed
 * texts    what was typed for a question that closed without it, to be offered when it is asked again
 */

/** @import {Action, Answer, Author, Question, Value} from "./types.d.ts" */

const PREFIX = "session-server:kept:";
const HOUR = 3_600_000;
const TEXTS = 200;
const LIFETIMES = { draft: 7 * 24 * HOUR, action: 24 * HOUR, text: 7 * 24 * HOUR };

/** @typedef {keyof typeof LIFETIMES} Kind */
/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} KeptStorage */
/** @typedef {{ session: string, at: number, tab: string }} Entry */

/**
 * @typedef {Entry & {
 *   requestId: string, questionId: string, answer?: Answer, base?: Answer,
 *   kind?: string, message?: string, sent?: readonly (Answer | null)[],
 * }} KeptDraft
 * @typedef {Entry & { seq: number, action: Action }} KeptAction
 * @typedef {Entry & {
 *   requestId: string, questionId: string, kind: string, message: string, value: Value, by?: Author,
 * }} KeptText
 */

export class Kept {
  /** Whether there is room: otherwise what is not sent goes with the page. */
  canKeep = true;
  #storage;
  #prefix;

  /**
   * @param {KeptStorage} storage
   * @param {string} tab
   * @param {string} scope - whose it is: what one credential left is not sent with another
   */
  constructor(storage, tab, scope) {
    this.#storage = storage;
    this.#prefix = prefixOf(scope);
    this.tab = tab;
  }

  /**
   * Another credential has taken the place of the one before: what that left goes along.
   *
   * @param {string} scope
   * @returns {boolean} whether it is another one
   */
  moveTo(scope) {
    const old = this.#prefix;
    this.#prefix = prefixOf(scope);
    if (old === this.#prefix) return false;
    for (const key of this.#keys(old)) this.#move(key, this.#prefix + key.slice(old.length));
    return true;
  }

  /**
   * @param {string} from
   * @param {string} to
   */
  #move(from, to) {
    const entry = this.#storage.getItem(from);
    this.#storage.removeItem(from); // first: there may be no room for both
    if (entry !== null) this.#write(to, entry);
  }

  // Drafts

  /** @param {Omit<KeptDraft, "tab">} draft */
  putDraft(draft) {
    this.#put("draft", { ...draft, tab: this.tab }, [draft.requestId, draft.questionId]);
  }

  /** @param {Pick<KeptDraft, "session" | "requestId" | "questionId"> & { tab?: string }} draft */
  dropDraft({ session, requestId, questionId, tab = this.tab }) {
    this.#remove("draft", { session, tab }, [requestId, questionId]);
  }

  /**
   * @param {string} session
   * @returns {KeptDraft[]}
   */
  drafts(session) {
    return this.#all("draft", session);
  }

  // Actions

  /** @param {Omit<KeptAction, "tab">} action */
  putAction(action) {
    this.#put("action", { ...action, tab: this.tab }, [action.seq]);
  }

  /** @param {Pick<KeptAction, "session" | "seq"> & { tab?: string }} action */
  dropAction({ session, seq, tab = this.tab }) {
    this.#remove("action", { session, tab }, [seq]);
  }

  /**
   * @param {string} session
   * @returns {KeptAction[]}
   */
  actions(session) {
    return /** @type {KeptAction[]} */ (this.#all("action", session)).sort((a, b) => a.seq - b.seq);
  }

  // Texts

  /** @param {Omit<KeptText, "tab">} text */
  putText(text) {
    this.#put("text", { ...text, tab: "" }, [text.kind, text.questionId, text.message]);
    const all = this.#all("text").sort((one, other) => one.at - other.at);
    for (const old of all.slice(0, -TEXTS)) this.dropText(old);
  }

  /**
   * A draft whose question closed while nobody was there.
   *
   * @param {KeptDraft} draft
   */
  keepTextOf({ session, at, requestId, questionId, kind, message, answer }) {
    const value = answer && answer.state !== "skipped" ? answer.value : undefined;
    if (!value || kind === undefined || message === undefined) return;
    this.putText({ session, at, requestId, questionId, kind, message, value });
  }

  /** @param {Pick<KeptText, "session" | "kind" | "questionId" | "message">} text */
  dropText({ session, kind, questionId, message }) {
    this.#remove("text", { session, tab: "" }, [kind, questionId, message]);
  }

  /**
   * What was once typed for this question, or for one that asks the same.
   *
   * @param {string} session
   * @param {Question} question
   * @returns {KeptText | undefined}
   */
  textFor(session, question) {
    const fitting = this.#all("text", session).filter((text) => text.kind === question.kind);
    return (
      fitting.find((text) => text.message === question.message) ??
      fitting.find((text) => text.questionId === question.id)
    );
  }

  // All

  /** The sessions in which something waits to be sent. */
  get sessions() {
    const unsent = [...this.#all("draft"), ...this.#all("action")];
    return new Set(unsent.map((entry) => entry.session));
  }

  /**
   * The session is gone, and with it whoever could have taken this; or it is only not for us to see
   * any more, and so texts are kept.
   *
   * @param {string} session
   */
  forget(session) {
    for (const draft of this.drafts(session)) {
      this.keepTextOf(draft);
      this.dropDraft(draft);
    }
    for (const action of this.actions(session)) this.dropAction(action);
  }

  /**
   * @param {Kind} kind
   * @param {Entry} entry
   * @param {readonly (string | number)[]} name
   */
  #put(kind, entry, name) {
    this.#write(this.#key(kind, entry, name), JSON.stringify(entry));
  }

  /**
   * Where there is no room, texts that are only offered give way to what is not sent.
   *
   * @param {string} key
   * @param {string} text
   */
  #write(key, text) {
    let isWritten = this.#tryWriting(key, text);
    if (!isWritten) {
      for (const offered of this.#all("text")) this.dropText(offered);
      isWritten = this.#tryWriting(key, text);
    }
    if (!isWritten && this.canKeep) console.warn("nothing more can be kept in this browser");
    this.canKeep = isWritten;
  }

  /**
   * @param {string} key
   * @param {string} text
   */
  #tryWriting(key, text) {
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

  /**
   * @param {Kind} kind
   * @param {string} [session]
   * @returns {any[]}
   */
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

  /**
   * @param {string} key
   * @returns {Entry | undefined}
   */
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

/** Storage where there is none. */
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

  /**
   * @param {string} key
   * @param {string} value
   */
  setItem(key, value) {
    this.#items.set(key, value);
  }

  /** @param {string} key */
  removeItem(key) {
    this.#items.delete(key);
  }
}
