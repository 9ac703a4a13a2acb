/** A typed event emitter. */

/** @template {Record<string, any>} E - the value of each event */
export class Events {
  /** @type {Map<keyof E, Set<(value: any) => void>>} */
  #listeners = new Map();

  /**
   * @template {keyof E} N
   * @param {N} name
   * @param {(value: E[N]) => void} listener
   * @returns {() => void} stops listening
   */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /**
   * @template {keyof E} N
   * @param {N} name
   * @param {E[N]} value
   */
  emit(name, value) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        listener(value);
      } catch (error) {
        report(error);
      }
    }
  }
}

/**
 * An error in a view must not break the client.
 *
 * @param {unknown} error
 */
function report(error) {
  setTimeout(() => {
    throw error;
  });
}
