/** What one field has in the browser's storage (`storage.js`), and when it is saved there. */

/** @import { BrowserStorage, StoredText } from "../storage.js" */
/** @import { Answer, Author, Question, Value } from "../types.d.ts" */

/** Often enough that a crash loses next to nothing. */
const SAVE_INTERVAL = 250;

/**
 * `base`: what the host had when this was begun; `sent`: what it may have of it.
 *
 * @typedef {{ answer?: Answer, base?: Answer, sent: readonly (Answer | null)[] }} UnsentDraft
 */

/** Two entries: the field's unsent draft, and an earlier text to offer. */
export class DraftStorage {
  /** @type {StoredText | undefined} typed for the same question before, and not included */ text;
  #storage;
  #name;
  #question;
  #unsent;
  #savedAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {BrowserStorage} storage
   * @param {{ session: string, requestId: string, questionId: string }} name
   * @param {() => Question | undefined} question
   * @param {() => UnsentDraft | undefined} unsent - what is to be saved now, if anything
   */
  constructor(storage, name, question, unsent) {
    this.#storage = storage;
    this.#name = name;
    this.#question = question;
    this.#unsent = unsent;
  }

  saveSoon() {
    if (this.#timer) return;
    const delay = this.#savedAt + SAVE_INTERVAL - Date.now();
    if (delay <= 0) this.saveNow();
    else this.#timer = setTimeout(() => this.saveNow(), delay);
  }

  saveNow() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unsent = this.#unsent();
    if (!unsent) {
      this.#storage.dropDraft(this.#name);
      return;
    }
    this.#savedAt = Date.now();
    const { kind, message } = this.#question() ?? {};
    this.#storage.putDraft({ ...this.#name, ...unsent, at: this.#savedAt, kind, message });
  }

  /** Looks for an earlier text again: the question may have changed. */
  findText() {
    const question = this.#question();
    this.text = question && this.#storage.textFor(this.#name.session, question);
  }

  /**
   * @param {Value} value
   * @param {Author} [by] - who replaced it
   */
  putText(value, by) {
    const question = this.#question();
    if (!question) return;
    const { id: questionId, kind, message } = question;
    const { session, requestId } = this.#name;
    this.#storage.putText({
      session, at: Date.now(), requestId, questionId, kind, message, value, by,
    });
    this.findText();
  }

  dropText() {
    if (this.text) this.#storage.dropText(this.text);
    this.text = undefined;
  }
}
