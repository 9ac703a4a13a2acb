// What this browser remembers between visits. Private windows and full disks may refuse; then it is
// remembered as long as the page is open.

const PREFIX = "session-server.";
/** @type {Map<string, string>} */
const instead = new Map();

/** @param {string} key */
export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key) ?? undefined;
  } catch {
    return instead.get(key);
  }
}

/**
 * @param {string} key
 * @param {string | undefined} value
 */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    if (value === undefined) instead.delete(key);
    else instead.set(key, value);
  }
}
