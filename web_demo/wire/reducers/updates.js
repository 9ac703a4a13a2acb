/**
 * How a frozen value changes: into a new one, or into itself when nothing differs.
 */

/**
 * Whether two JSON values are the same; a key that is `undefined` counts as absent.
 *
 * @param {any} old
 * @param {any} now
 * @returns {boolean}
 */
export function same(old, now) {
  if (old === now) return true;
  if (!old || !now || typeof old !== "object" || typeof now !== "object") return false;
  if (Array.isArray(old) || Array.isArray(now)) return sameItems(old, now);
  const names = Object.keys(old).filter((name) => old[name] !== undefined);
  const others = Object.keys(now).filter((name) => now[name] !== undefined);
  return (
    names.length === others.length &&
    names.every((name) => Object.hasOwn(now, name) && same(old[name], now[name]))
  );
}

/**
 * @param {any} old
 * @param {any} now
 */
function sameItems(old, now) {
  if (!Array.isArray(old) || !Array.isArray(now) || old.length !== now.length) return false;
  return old.every((item, index) => same(item, now[index]));
}

/**
 * `value` with these fields, or the very same object if they hold already. `undefined` removes.
 *
 * @template {object} T
 * @param {T} value
 * @param {Partial<T>} changes
 * @returns {T}
 */
export function updated(value, changes) {
  const names = /** @type {(keyof T)[]} */ (Object.keys(changes));
  return names.every((name) => same(value[name], changes[name]))
    ? value
    : present({ ...value, ...changes });
}

/**
 * The object without the keys that are `undefined`: in a state, nothing is spelled one way only.
 *
 * @template {object} T
 * @param {T} value
 * @returns {T}
 */
export function present(value) {
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) delete value[/** @type {keyof T} */ (name)];
  }
  return value;
}

/**
 * The list, or nothing where it is empty.
 *
 * @template T
 * @param {readonly T[]} list
 * @returns {readonly T[] | undefined}
 */
export const filled = (list) => (list.length ? list : undefined);
