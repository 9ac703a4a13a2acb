// Which addresses a page may offer to open. No DOM: tests run the cases of the host.

/**
 * The address, if it is one that a click may open.
 * @param {string} address
 */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The address that people may be asked to open; the same rule as the host's `is_web_address`.
 * @param {string} address
 */
export function webAddress(address) {
  if (/[\s\\]|\p{C}|\p{Z}/u.test(address)) return undefined;
  const authority = /^https?:\/\/([^/?#]*)/i.exec(address)?.[1] ?? "";
  const [, name] = /^(\[[0-9a-f:.]+\]|[^@:[\]]+)(?::\d{0,5})?$/i.exec(authority) ?? [];
  if (!name || !(name.startsWith("[") || isHostName(name))) return undefined;
  const url = safeAddress(address);
  return url?.hostname && url.port !== "0" ? url : undefined;
}

/**
 * Browsers read numbers as addresses; only the usual form of these is allowed.
 * @param {string} name
 */
function isHostName(name) {
  const labels = name.replace(/\.$/, "").split(".");
  if (/^(\d+|0x[0-9a-f]*)$/i.test(labels.at(-1) ?? "")) {
    return safeAddress(`http://${name}`)?.hostname === name;
  }
  return labels.every((label) => /^[\p{L}\p{M}0-9_-]+$/u.test(label) && !/^-|-$/.test(label));
}
