// Between a date and time with its zone, as hosts want it, and the local one that a picker shows.

/**
 * @param {string} local `2026-07-28T14:00` or with seconds
 * @returns {string} with the zone that this browser is in at that time
 */
export function zonedOf(local) {
  if (local === "") return "";
  const at = new Date(local);
  if (Number.isNaN(at.getTime())) return local;
  const minutes = -at.getTimezoneOffset();
  const whole = local.length === 16 ? `${local}:00` : local;
  if (minutes === 0) return `${whole}Z`;
  const two = /** @param {number} n */ (n) => String(Math.trunc(Math.abs(n))).padStart(2, "0");
  return `${whole}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/**
 * @param {string} zoned
 * @returns {string} as a picker shows it; what is no date and time stays as it is
 */
export function localOf(zoned) {
  const at = new Date(zoned);
  if (zoned === "" || Number.isNaN(at.getTime())) return zoned;
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
  return at.getSeconds() === 0 ? shifted.slice(0, 16) : shifted.slice(0, 19);
}
