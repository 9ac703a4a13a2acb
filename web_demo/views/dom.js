// Building and updating elements. Everything the page shows goes through here: text is always a text
// node, so that no string of a stranger is ever read as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Readonly<Record<string, unknown>>} Props */

/** A phone, upright or on its side; the style sheets have the same condition. */
export const SMALL = matchMedia("(max-width: 760px), (max-height: 480px)");

/**
 * An element with its attributes and children. A function under `on…` becomes a listener; `true`
 * is an empty attribute; `false`, `null` and `undefined` leave it out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | readonly Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      attribute(element, name === "className" ? "class" : name, value);
    }
  }
  add(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
export function attribute(element, name, value) {
  if (value === false || value === null || value === undefined) {
    element.removeAttribute(name);
  } else {
    const text = value === true ? "" : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/**
 * @param {Node} parent
 * @param {readonly (Child | readonly Child[])[]} children
 */
export function add(parent, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces what is in an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/**
 * Sets an element's text, touching the page only if it differs.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {HTMLElement} element
 * @param {boolean} isShown
 */
export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/**
 * An icon: strokes on a 16 by 16 grid, drawn in the colour of the text.
 * @param {string} path
 * @param {string} [label] what it says to those who do not see it
 */
export function icon(path, label) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("class", "icon");
  if (label) {
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", label);
  } else {
    drawing.setAttribute("aria-hidden", "true");
  }
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", path);
  drawing.append(line);
  return drawing;
}

const LATEST = 250;

/**
 * Work that is done once before the next paint, however often it is asked for. A page in the
 * background is not painted, and must still change its title: there it is done a little later.
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
    setTimeout(run, LATEST);
  };
}
