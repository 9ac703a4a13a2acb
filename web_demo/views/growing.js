// Text areas as tall as their text, in browsers whose style sheets cannot say so.

const isNeeded = !CSS.supports("field-sizing", "content");

/** @param {HTMLTextAreaElement} area */
export function grow(area) {
  if (!isNeeded) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

export function growAsTyped() {
  if (!isNeeded) return;
  document.addEventListener("input", ({ target }) => {
    if (target instanceof HTMLTextAreaElement) grow(target);
  });
}
