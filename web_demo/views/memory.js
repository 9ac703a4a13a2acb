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

const TOKEN = `${PREFIX}token`;

/**
 * The credential of this tab: from the address if it is there, and then out of it, so that neither
 * a screenshot nor a copied address gives it away. A reload finds it in the tab. What the browser
 * kept for a new tab is `kept`: for when there is no way in without, since on one's own machine a
 * link that was tried out once should not take its owner's place.
 * @returns {{ token?: string, kept?: string }}
 */
export function takeToken() {
  const address = new URL(location.href);
  const token = address.searchParams.get("tkn");
  try {
    if (token) {
      sessionStorage.setItem(TOKEN, token);
      localStorage.setItem(TOKEN, token);
      address.searchParams.delete("tkn");
      history.replaceState(history.state, "", address);
      return { token };
    }
    const own = sessionStorage.getItem(TOKEN);
    if (own) return { token: own };
    const kept = localStorage.getItem(TOKEN);
    return kept ? { kept } : {};
  } catch {
    return token ? { token } : {};
  }
}

/** @param {string} token for this tab, from its next load on */
export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}
