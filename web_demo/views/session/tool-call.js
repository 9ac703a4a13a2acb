// One tool call: its title, state and content, and approval where it is needed.

/**
 * @import {
 *   PendingConfirmation, PendingResultConfirmation, ResponsePart, ToolCall,
 * } from "../../client/types.d.ts"
 */
/** @import { SessionContext } from "./session-context.js" */
import { groupsOf } from "../../form/request-groups.js";
import { WHY_ID } from "../access.js";
import { codeBlock, contentBlocks, editsBlock, plainOf, textBlock } from "./content.js";
import { attribute, fill, h, icon, setText, show } from "../dom.js";
import { ICONS } from "../icons.js";

/** @type {Readonly<Record<ToolCall["status"], string>>} */
const STATES = {
  streaming: "Preparing",
  "pending-confirmation": "Needs approval",
  running: "Running",
  "pending-result-confirmation": "Result needs approval",
  completed: "Done",
  cancelled: "Not run",
};
const REASONS = { denied: "Denied", skipped: "Skipped", "result-denied": "Result denied" };

export class ToolCallView {
  /** @type {string | undefined} */
  asked = undefined;
  lastRound = 0;
  shownRounds = "";

  title = h("span", { class: "tool-title one-line", dir: "auto" });
  name = h("bdi", { class: "tool-name one-line" });
  state = h("span", { class: "tool-state" });
  more = h("div", { class: "tool-more stack" });
  problem = h("p", { class: "tool-problem problem", dir: "auto", hidden: true });
  rounds = h("ol", { class: "tool-rounds hint", "aria-label": "Rounds", hidden: true });
  ask = h("div", { class: "tool-ask stack", role: "group", "aria-label": "Approval", hidden: true });
  summary = h("summary", null, icon(ICONS.tool), this.title, this.name, this.state, icon(ICONS.chevron));
  element = h(
    "div",
    { class: "tool-call", role: "group" },
    h("details", { class: "tool-details" }, this.summary, this.more),
    this.problem,
    this.rounds,
    this.ask,
  );

  /** @param {SessionContext} context @param {string} turnId */
  constructor(context, turnId) {
    this.context = context;
    this.turnId = turnId;
  }

  /** @param {{ part: ResponsePart }} placed */
  update({ part }) {
    if (part.kind !== "toolCall") return;
    const call = part.toolCall;
    this.call = call;
    const isFailed = "success" in call && !call.success;
    attribute(this.element, "data-status", isFailed ? "failed" : call.status);
    attribute(this.element, "data-call", call.toolCallId);
    attribute(this.element, "aria-label", `Tool call: ${call.displayName}`);
    setText(this.title, titleOf(call));
    setText(this.name, titleOf(call) === call.displayName ? "" : call.displayName);
    setText(this.state, stateOf(call));
    const problem = problemOf(call);
    setText(this.problem, problem);
    show(this.problem, problem !== "");
    fill(this.more, ...moreOf(call));
    this.#showAsk(call);
    this.#showRounds(call);
  }

  refresh() {
    if (!this.call) return;
    this.#showAsk(this.call);
    this.#showRounds(this.call);
  }

  /** The rounds of questions of a call. */
  /** @param {ToolCall} call */
  #showRounds(call) {
    const open = groupsOf(this.context.requests().filter((r) => r._meta?.call === call.toolCallId));
    const [asking] = open;
    const round = asking?.requests[0]?._meta?.round;
    this.lastRound = Math.max(this.lastRound, round ?? 0);
    const hasEnded = ["completed", "cancelled"].includes(call.status);
    show(this.rounds, this.lastRound > 0 && !hasEnded);
    const waits = asking && "waiting for your answers below";
    const key = `${this.lastRound} ${waits}`;
    if (key === this.shownRounds) return;
    this.shownRounds = key;
    fill(this.rounds, ...roundsOf(this.lastRound, waits));
  }

  // Approval

  /** @param {ToolCall} call */
  #showAsk(call) {
    const isAsked =
      call.status === "pending-confirmation" || call.status === "pending-result-confirmation";
    show(this.ask, isAsked);
    const { mayDirect, why } = this.context.access;
    attribute(this.ask, "aria-describedby", why ? WHY_ID : undefined);
    const key = isAsked ? `${call.status} ${mayDirect}` : "";
    if (this.asked === key && this.askedCall === call) return;
    this.asked = key;
    this.askedCall = call;
    fill(this.ask);
    if (!isAsked) return;
    if (call.status === "pending-confirmation") this.#askBefore(call, mayDirect);
    else this.#askAfter(call, mayDirect);
  }

  /** @param {PendingConfirmation} call @param {boolean} mayDirect */
  #askBefore(call, mayDirect) {
    const title = call.confirmationTitle ? textBlock(call.confirmationTitle, "ask-title") : null;
    const input = this.#editor(call, mayDirect);
    const edited = () => (input?.value === call.toolInput ? undefined : input?.value);
    const confirm = (/** @type {boolean} */ approved, /** @type {string | undefined} */ optionId) => {
      const decision = { approved, optionId, editedToolInput: edited() };
      this.#send(this.context.session.confirmToolCall(this.turnId, call.toolCallId, decision));
    };
    fill(
      this.ask,
      title,
      input &&
        h(
          "label",
          { class: "tool-input" },
          h("span", { class: "hint" }, "Input, which you can change"),
          input,
        ),
      !input && call.toolInput && codeBlock(call.toolInput),
      call.edits && editsBlock(call.edits),
      h("div", { class: "ask-actions" }, ...choicesOf(call, mayDirect, confirm)),
    );
  }

  /** @param {PendingResultConfirmation} call @param {boolean} mayDirect */
  #askAfter(call, mayDirect) {
    const confirm = (/** @type {boolean} */ approved) => () =>
      this.#send(this.context.session.confirmToolResult(this.turnId, call.toolCallId, approved));
    fill(
      this.ask,
      h("p", { class: "ask-title" }, "It has run. May the agent use the result?"),
      ...contentBlocks(call.content ?? []),
      h(
        "div",
        { class: "ask-actions" },
        h("button", { class: "decline", disabled: !mayDirect, onclick: confirm(false) }, "Deny the result"),
        h("button", { class: "primary", disabled: !mayDirect, onclick: confirm(true) }, "Use the result"),
      ),
    );
  }

  /** @param {PendingConfirmation} call @param {boolean} mayDirect */
  #editor(call, mayDirect) {
    if (!call.editable || call.toolInput === undefined) return undefined;
    const area = h("textarea", {
      class: "field-input tool-code",
      rows: 3,
      spellcheck: "false",
      dir: "ltr",
      readonly: !mayDirect,
      oninput: () => (this.edited = area.value),
    });
    area.value = this.edited ?? call.toolInput;
    return area;
  }

  /** @param {Promise<unknown>} decision - the buttons are disabled unless it fails */
  #send(decision) {
    for (const button of this.ask.querySelectorAll("button")) button.disabled = true;
    this.context.attempt(decision, () => {
      this.asked = undefined;
      this.refresh();
    });
  }

  /** The target of links to what waits. */
  focus() {
    this.element.scrollIntoView({ block: "center" });
    const button =
      this.ask.querySelector("button.primary:not(:disabled)") ?? this.ask.querySelector("button");
    if (button instanceof HTMLElement) button.focus({ preventScroll: true });
  }

  get isAsking() {
    return !this.ask.hidden;
  }
}

/**
 * The rounds that have ended, and the current one.
 * @param {number} last
 * @param {string | undefined} waits
 */
function roundsOf(last, waits) {
  const done = Array.from({ length: Math.max(0, last - 1) }, (_, index) =>
    h("li", { class: "round-step row" }, icon(ICONS.check, "Answered:"), `Round ${index + 1}`),
  );
  const text = `Round ${last}: ${waits ?? "answered, the tool continues"}`;
  const mark = waits ? h("span", { class: "dot" }) : icon(ICONS.check);
  return [...done, h("li", { class: "round-step row", "data-open": waits !== undefined }, mark, text)];
}

/**
 * @param {PendingConfirmation} call
 * @param {boolean} mayDirect
 * @param {(approved: boolean, optionId?: string) => void} confirm
 */
function choicesOf(call, mayDirect, confirm) {
  /** @param {"approve" | "deny"} kind @param {string} fallback if the call offers none of that kind */
  const buttons = (kind, fallback) => {
    const offered = call.options?.filter((option) => option.kind === kind) ?? [];
    const options = offered.length > 0 ? offered : [{ id: undefined, label: fallback }];
    return options.map(({ id, label }, index) => {
      const main = index === 0 ? "primary" : "";
      const about = { class: kind === "deny" ? "decline" : main, disabled: !mayDirect };
      return h("button", { ...about, onclick: () => confirm(kind === "approve", id) }, label);
    });
  };
  return [...buttons("deny", "Deny"), ...buttons("approve", "Approve").reverse()];
}

/** @param {ToolCall} call */
function titleOf(call) {
  const done = "pastTenseMessage" in call ? plainOf(call.pastTenseMessage) : "";
  const doing = "invocationMessage" in call ? plainOf(call.invocationMessage) : "";
  return done || doing || call.displayName;
}

/** @param {ToolCall} call */
function stateOf(call) {
  if (call.status === "cancelled") return REASONS[call.reason] ?? STATES.cancelled;
  if ("success" in call && !call.success) return "Failed";
  return STATES[call.status];
}

/** @param {ToolCall} call */
function problemOf(call) {
  return "error" in call && call.error ? call.error.message : "";
}

/** @param {ToolCall} call */
function moreOf(call) {
  const input = call.status === "streaming" ? call.partialInput : call.toolInput;
  const chosen = "selectedOption" in call ? call.selectedOption?.label : undefined;
  return [
    h("p", { class: "hint" }, `${call.toolName}${chosen ? ` · ${chosen}` : ""}`),
    input && codeBlock(input, "Input"),
    call.status === "cancelled" && call.reasonMessage && textBlock(call.reasonMessage),
    ...("content" in call ? contentBlocks(call.content ?? []) : []),
    "structuredContent" in call &&
      call.structuredContent &&
      !call.content?.length &&
      codeBlock(JSON.stringify(call.structuredContent, null, 2)),
  ];
}
