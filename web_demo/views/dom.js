// Creating and updating elements. Text is always a text node, so that untrusted text is never
// parsed as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/**
 * @typedef {Readonly<Record<string, unknown>> & {
 *   [E in keyof HTMLElementEventMap as `on${E}`]?: (event: HTMLElementEventMap[E]) => void
 * }} Props
 */

/** A phone in portrait or landscape; the style sheets have the same condition. */
export const SMALL = matchMedia("(max-width: 760px), (max-height: 480px)");

/**
 * An element with its attributes and children. A function under `on…` becomes a listener; `true`
 * is an empty attribute; `false`, `null` and `undefined` leave it out. A button does not submit a
 * form unless its type says so.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | readonly Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  if (tag === "button") element.setAttribute("type", "button");
  for (const [name, value] of Object.entries(props ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      attribute(element, name, value);
    }
  }
  add(element, children);
  return element;
}

/** @param {Element} element @param {string} name @param {unknown} value */
export function attribute(element, name, value) {
  if (value === false || value === null || value === undefined) {
    element.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** @param {Node} parent @param {readonly (Child | readonly Child[])[]} children */
function add(parent, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/**
 * Sets an element's text, only if it differs.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLElement} element @param {boolean} isShown */
export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/**
 * An icon: strokes on a 16 by 16 grid, drawn in the colour of the text.
 * @param {string} path
 * @param {string} [label] for screen readers
 */
export function icon(path, label) {
  const drawing = svg("svg", { viewBox: "0 0 16 16", class: "icon" }, svg("path", { d: path }));
  attribute(drawing, "role", label && "img");
  attribute(drawing, "aria-label", label);
  attribute(drawing, "aria-hidden", label ? undefined : "true");
  return drawing;
}

/**
 * An element of a drawing.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Readonly<Record<string, string>>} attributes
 * @param {...Node} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * A button with an icon instead of a text.
 * @param {string} path
 * @param {string} label
 * @param {() => void} act
 * @param {Props} [props]
 */
export function iconButton(path, label, act, props) {
  const about = { class: "icon-button", "aria-label": label, onclick: act, ...props };
  return h("button", about, icon(path));
}

/**
 * A choice of a list: its radio button or checkbox, and its text.
 * @param {HTMLInputElement} input
 * @param {string} label
 * @param {...Child} more next to the label
 */
export function choice(input, label, ...more) {
  const text = h("span", { class: "choice-text" }, h("bdi", { class: "choice-label" }, label), ...more);
  return h("label", { class: "choice" }, input, text);
}

/**
 * @param {string} name
 * @param {string} value
 * @param {boolean} checked
 * @param {string} label
 * @param {string} description
 */
export function radioChoice(name, value, checked, label, description) {
  const input = h("input", { type: "radio", name, value, checked });
  return choice(input, label, h("bdi", { class: "choice-description hint" }, description));
}

const BACKGROUND_DELAY = 250;

/**
 * Runs the work once before the next paint, however often it is called. A page in the background is
 * not painted but must still update its title, so a timer runs it there.
 * @param {() => void} work
 */
export function oncePerFrame(work) {
  let isDue = false;
  const run = () => {
    if (!isDue) return;
    isDue = false;
    work();
  };
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(run);
    setTimeout(run, BACKGROUND_DELAY);
  };
}

// A list of views under one parent, one per key: kept while the key exists, moved only when the
// order changes, so that focus, caret and scroll positions survive updates.

/**
 * @template T
 * @typedef {{ readonly element: HTMLElement, update(item: T, index: number): void, remove?(): void }} ItemView
 */

/**
 * @template T
 * @template {ItemView<T>} V
 */
export class KeyedViews {
  /**
   * @param {HTMLElement} parent
   * @param {(item: T) => string} keyOf
   * @param {(item: T) => V} make
   */
  constructor(parent, keyOf, make) {
    this.parent = parent;
    this.keyOf = keyOf;
    this.make = make;
    /** @type {Map<string, { view: V, item: T, index: number }>} */
    this.known = new Map();
  }

  /** @param {readonly T[]} items */
  update(items) {
    const wanted = new Set(items.map(this.keyOf));
    for (const [key, { view }] of this.known) {
      if (wanted.has(key)) continue;
      this.known.delete(key);
      view.element.remove();
      view.remove?.();
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

  /** @param {T} item @param {number} index */
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
}

// Text areas as tall as their text, in browsers without `field-sizing`.

const needsAutoGrow = !CSS.supports("field-sizing", "content");

/** @param {HTMLTextAreaElement} area */
export function autoGrow(area) {
  if (!needsAutoGrow) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

export function enableAutoGrow() {
  if (!needsAutoGrow) return;
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement) autoGrow(target);
  });
}

// Whether a pointer is down. Layout changes wait until it is up, or the click would miss its
// target.

let isPointerDown = false;
const options = { capture: true, passive: true };
document.addEventListener("pointerdown", () => (isPointerDown = true), options);
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => (isPointerDown = false), options);
}

/**
 * Runs the work now, or after the click that is in progress.
 * @param {() => void} work
 */
export function afterClick(work) {
  if (!isPointerDown) {
    work();
    return;
  }
  const later = () => setTimeout(work);
  document.addEventListener("pointerup", later, { once: true });
}
