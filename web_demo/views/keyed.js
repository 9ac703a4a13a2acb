// A list of views under one parent, one per key: kept while the key stays, moved only when the order
// changes, so that focus, caret and scroll positions survive every update.

/**
 * @template T
 * @typedef {{ readonly element: HTMLElement, update(item: T, index: number): void, remove?(): void }} ItemView
 */

/** @template T */
export class KeyedViews {
  /**
   * @param {HTMLElement} parent
   * @param {(item: T) => string} keyOf
   * @param {(item: T) => ItemView<T>} make
   */
  constructor(parent, keyOf, make) {
    this.parent = parent;
    this.keyOf = keyOf;
    this.make = make;
    /** @type {Map<string, { view: ItemView<T>, item: T, index: number }>} */
    this.known = new Map();
  }

  /** @param {readonly T[]} items */
  update(items) {
    const wanted = new Set(items.map(this.keyOf));
    for (const [key, { view }] of this.known) {
      if (!wanted.has(key)) this.#drop(key, view);
    }
    /** @type {Element | null} */
    let after = this.parent.firstElementChild;
    items.forEach((item, index) => {
      const { element } = this.#show(item, index);
      if (element === after) {
        after = element.nextElementSibling;
      } else {
        this.parent.insertBefore(element, after);
      }
    });
  }

  /** @param {string} key */
  get(key) {
    return this.known.get(key)?.view;
  }

  views() {
    return [...this.known.values()].map(({ view }) => view);
  }

  /**
   * @param {T} item
   * @param {number} index
   */
  #show(item, index) {
    const key = this.keyOf(item);
    const known = this.known.get(key);
    if (known === undefined) {
      const view = this.make(item);
      this.known.set(key, { view, item, index });
      view.update(item, index);
      return view;
    }
    if (known.item !== item || known.index !== index) {
      known.item = item;
      known.index = index;
      known.view.update(item, index);
    }
    return known.view;
  }

  /**
   * @param {string} key
   * @param {ItemView<T>} view
   */
  #drop(key, view) {
    this.known.delete(key);
    view.element.remove();
    view.remove?.();
  }
}
