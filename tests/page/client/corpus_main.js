/** Prints `[how many cases ran, what is wrong with them]`. */

import { readFileSync, readdirSync } from "node:fs";

import { runFile } from "./corpus.js";

const folder = new URL("../../corpus/reducers/", import.meta.url);
const results = readdirSync(folder)
  .filter((name) => name !== "nulls.json")
  .map((name) => runFile(name, JSON.parse(readFileSync(new URL(name, folder), "utf8"))));

const ran = results.reduce((sum, result) => sum + result.ran, 0);
console.log(JSON.stringify([ran, results.flatMap((result) => result.faults)]));
