/** The drafts of a field: the cases that the terminal's form runs too, and how values compare. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  covers,
  initialDraft,
  isTypedValue,
  TABLE,
  transition,
} from "../../../web_demo/client/drafts/draft-state.js";
import cases from "../../corpus/draft_field.json" with { type: "json" };

/** `draft a`, `submitted a`, `skipped` or nothing. */
function answer(words) {
  const [state, text] = words ?? [];
  if (!state) return undefined;
  return text === undefined ? { state } : { state, value: { kind: "text", value: text } };
}

/** As the host has it, with a mark of its own. */
const hostsAnswer = (words) => {
  const bare = answer(words);
  return bare && { ...bare, _meta: { at: 1 } };
};

const split = (text) => text?.split(" ");

const used = new Set();

function row(state, event) {
  return TABLE.find(([phases, type, applies]) =>
    type === event.type && phases.includes(state.phase) && applies(state, event));
}

for (const { name, atHost: before, steps, gives, ...rest } of cases) {
  test(name, () => {
    assert.deepEqual(rest, {}, "unknown keys");
    let state = initialDraft(hostsAnswer(split(before)));
    for (const { do: words, then, isTyping = false, isLast = true, ...more } of steps) {
      assert.deepEqual(more, {}, "unknown keys");
      const [type, ...what] = words.split(" ");
      const isHosts = type === "received" || type === "confirmed";
      const event = { type, answer: isHosts ? hostsAnswer(what) : answer(what), isTyping, isLast };
      const found = row(state, event);
      if (found) used.add(TABLE.indexOf(found));
      state = transition(state, event);
      assert.equal(state.phase, then, words);
    }
    const { shown, base, atHost: ends, isOwn, ...unknown } = gives;
    assert.deepEqual(unknown, {}, "unknown keys");
    assert.deepEqual(state.shown, answer(split(shown)));
    assert.deepEqual(state.base, answer(split(base)));
    assert.deepEqual(state.atHost, hostsAnswer(split(ends)));
    assert.equal(state.isOwn, isOwn);
  });
}

test("the cases use every row of the table", () => {
  const unused = TABLE.filter((_, index) => !used.has(index));
  assert.deepEqual(unused.map(([phases, event, , next]) => [phases, event, next]), []);
});

// Values

const text = (value) => ({ kind: "text", value });
const many = (...value) => ({ kind: "selected-many", value });

test("a text is lost unless the newer one contains all of it", () => {
  assert.ok(covers(text("by boat at noon"), text("by boat")));
  assert.ok(covers(text("at noon, by boat"), text("by boat")));
  assert.ok(!covers(text("not now"), text("no")));
  assert.ok(!covers(text("by train"), text("by boat")));
  assert.ok(!covers(undefined, text("by boat")));
});

test("a choice is lost unless the newer one contains it", () => {
  assert.ok(covers(many("a", "b"), many("a")));
  assert.ok(!covers(many("b"), many("a")));
  assert.ok(covers({ ...many("a"), freeformValues: ["b"] }, many("b")));
  assert.ok(!covers({ kind: "boolean", value: true }, { kind: "boolean", value: false }));
});

test("only what is entered letter by letter counts as typed", () => {
  assert.ok(isTypedValue(undefined) && isTypedValue(text("x")));
  assert.ok(isTypedValue({ kind: "number", value: 1 }));
  assert.ok(isTypedValue({ kind: "selected", value: "", freeformValues: ["x"] }));
  assert.ok(!isTypedValue(many("a")) && !isTypedValue({ kind: "boolean", value: true }));
});
