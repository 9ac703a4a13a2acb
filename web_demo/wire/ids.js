/**
 * Ids that nobody else makes, also where `crypto.randomUUID` is missing: on plain HTTP in a LAN.
 */

const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz";
const LENGTH = 20;

/** @returns {string} */
export const newId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(LENGTH)), (byte) => LETTERS[byte % 36]).join("");
