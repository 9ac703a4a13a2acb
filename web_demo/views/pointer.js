// Whether a click is under way. What would move the page then waits, or the click would miss.

let isDown = false;
const options = { capture: true, passive: true };
document.addEventListener("pointerdown", () => (isDown = true), options);
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => (isDown = false), options);
}

/**
 * Does the work now, or when the click that is under way has arrived where it was aimed.
 * @param {() => void} work
 */
export function afterClick(work) {
  if (!isDown) {
    work();
    return;
  }
  const later = () => setTimeout(work);
  document.addEventListener("pointerup", later, { once: true });
}
