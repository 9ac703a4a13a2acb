/** What one value is to another, and which patterns a browser may be trusted with. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { isAmiss } from "../../../web_demo/form/patterns.js";
import { covers, isTyped } from "../../../web_demo/wire/versions.js";

const text = (value) => ({ kind: "text", value });
const many = (...value) => ({ kind: "selected-many", value });

test("a text is lost unless the newer one has all its words", () => {
  assert.ok(covers(text("by boat at noon"), text("by boat")));
  assert.ok(covers(text("at noon, by boat"), text("by boat")));
  assert.ok(!covers(text("not now"), text("no")));
  assert.ok(!covers(text("by train"), text("by boat")));
  assert.ok(!covers(undefined, text("by boat")));
});

test("a choice is lost unless the newer one has it too", () => {
  assert.ok(covers(many("a", "b"), many("a")));
  assert.ok(!covers(many("b"), many("a")));
  assert.ok(covers({ ...many("a"), freeformValues: ["b"] }, many("b")));
  assert.ok(!covers({ kind: "boolean", value: true }, { kind: "boolean", value: false }));
});

test("only what is written letter by letter is typed", () => {
  assert.ok(isTyped(undefined) && isTyped(text("x")) && isTyped({ kind: "number", value: 1 }));
  assert.ok(isTyped({ kind: "selected", value: "", freeformValues: ["x"] }));
  assert.ok(!isTyped(many("a")) && !isTyped({ kind: "boolean", value: true }));
});

test("a pattern is checked here only if it cannot take for ever", () => {
  assert.ok(isAmiss("^[A-Z]{3}$", "abc") && !isAmiss("^[A-Z]{3}$", "ABC"));
  assert.ok(isAmiss("^v\\d+\\.\\d+$", "v1") && !isAmiss("\\d", "a1b"));
  for (const wild of ["^(a+)+$", "^(a|a)*$", "^(a)\\1$", "^(?=a)b$", "^a*a*a*$", "(", "^(a{2}){9}$"])
    assert.ok(!isAmiss(wild, "b"), wild);
  assert.ok(!isAmiss("^a$", "b".repeat(501)), "a long text");
});
