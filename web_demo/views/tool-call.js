// One tool call: its title, state and content, and approval where it is needed.

/** @import { ConfirmationOption, PendingConfirmation, ToolCall } from "../client/types.d.ts" */
/** @import { SessionContext } from "./session-context.js" */
import { groupsOf } from "../form/request-groups.js";
import { WHY_ID } from "./access.js";
import { contentBlocks, editsBlock, plainOf, textBlock } from "./content.js";
import { attribute, fill, h, icon, setText, show } from "./dom.js";
import { ICONS } from "./icons.js";

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

  /** @param {SessionContext} context @param {string} turnId */
  constructor(context, turnId) {
    this.context = context;
    this.turnId = turnId;
    this.title = h("span", { class: "tool-title", dir: "auto" });
    this.name = h("bdi", { class: "tool-name" });
    this.state = h("span", { class: "tool-state" });
    this.more = h("div", { class: "tool-more" });
    this.problem = h("p", { class: "tool-problem problem", dir: "auto", hidden: true });
    this.rounds = h("ol", { class: "tool-rounds", "aria-label": "Rounds", hidden: true });
    this.ask = h("div", { class: "tool-ask", role: "group", "aria-label": "Approval", hidden: true });
    this.details = h(
      "details",
      { class: "tool-details" },
      h(
        "summary",
        null,
        icon(ICONS.tool),
        this.title,
        this.name,
        this.state,
        icon(ICONS.chevron),
      ),
      this.more,
    );
    this.element = h(
      "div",
      { class: "tool-call", role: "group", "aria-label": "Tool call" },
      this.details,
      this.problem,
      this.rounds,
      this.ask,
    );
  }

  /** @param {ToolCall} call */
  update(call) {
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
    const isOver = ["completed", "cancelled"].includes(call.status);
    show(this.rounds, this.lastRound > 0 && !isOver);
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
    else this.#askAfter(mayDirect);
  }

  /** @param {PendingConfirmation} call @param {boolean} mayDirect */
  #askBefore(call, mayDirect) {
    const title = call.confirmationTitle ? textBlock(call.confirmationTitle, "ask-title") : null;
    const input = this.#editor(call, mayDirect);
    const edited = () => {
      const text = input?.value;
      return text === undefined || text === call.toolInput ? {} : { editedToolInput: text };
    };
    const confirm = /** @param {boolean} approved @param {string} [optionId] */ (
      approved,
      optionId,
    ) => {
      this.#lock();
      const choice = optionId === undefined ? {} : { optionId };
      const changes = approved ? edited() : {};
      this.context.attempt(
        this.context.session.confirmToolCall(this.turnId, call.toolCallId, {
          approved,
          ...choice,
          ...changes,
        }),
        () => this.#unlock(),
      );
    };
    fill(
      this.ask,
      title,
      input &&
        h(
          "label",
          { class: "tool-input" },
          h("span", { class: "small-label" }, "Input, which you can change"),
          input,
        ),
      !input && call.toolInput && h("pre", { class: "tool-code", tabindex: 0 }, call.toolInput),
      call.edits && editsBlock(call.edits),
      h("div", { class: "ask-actions" }, ...choicesOf(call, mayDirect, confirm)),
    );
  }

  /** @param {boolean} mayDirect */
  #askAfter(mayDirect) {
    const confirm = /** @param {boolean} approved */ (approved) => {
      this.#lock();
      const id = this.call?.toolCallId ?? "";
      this.context.attempt(this.context.session.confirmToolResult(this.turnId, id, approved), () =>
        this.#unlock(),
      );
    };
    fill(
      this.ask,
      h("p", { class: "ask-title" }, "It has run. May the agent use the result?"),
      ...(this.call && "content" in this.call ? contentBlocks(this.call.content ?? []) : []),
      h(
        "div",
        { class: "ask-actions" },
        h(
          "button",
          { type: "button", class: "decline", disabled: !mayDirect, onclick: () => confirm(false) },
          "Keep it back",
        ),
        h(
          "button",
          { type: "button", class: "primary", disabled: !mayDirect, onclick: () => confirm(true) },
          "Use the result",
        ),
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
    });
    area.value = this.edited ?? call.toolInput;
    area.readOnly = !mayDirect;
    area.addEventListener("input", () => {
      this.edited = area.value;
    });
    return area;
  }

  #lock() {
    for (const button of this.ask.querySelectorAll("button")) button.disabled = true;
  }

  #unlock() {
    this.asked = undefined;
    this.refresh();
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
    h("li", { class: "round-step" }, icon(ICONS.check, "Answered:"), `Round ${index + 1}`),
  );
  const text = `Round ${last}: ${waits ?? "answered, the tool continues"}`;
  const mark = waits ? h("span", { class: "dot" }) : icon(ICONS.check);
  return [...done, h("li", { class: "round-step", "data-open": waits !== undefined }, mark, text)];
}

/**
 * @param {PendingConfirmation} call
 * @param {boolean} mayDirect
 * @param {(approved: boolean, optionId?: string) => void} confirm
 */
function choicesOf(call, mayDirect, confirm) {
  const button = /** @param {string} kind @param {string} text @param {() => void} act */ (
    kind,
    text,
    act,
  ) => h("button", { type: "button", class: kind, disabled: !mayDirect, onclick: act }, text);
  const options = call.options ?? [];
  const of = /** @param {ConfirmationOption["kind"]} kind */ (kind) =>
    options.filter((option) => option.kind === kind);
  const denials = of("deny").map((option) =>
    button("decline", option.label, () => confirm(false, option.id)),
  );
  const approvals = of("approve").map((option, index) =>
    button(index === 0 ? "primary" : "", option.label, () => confirm(true, option.id)),
  );
  return [
    ...(denials.length > 0 ? denials : [button("decline", "Deny", () => confirm(false))]),
    ...(approvals.length > 0
      ? approvals.reverse()
      : [button("primary", "Approve", () => confirm(true))]),
  ];
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
  const reason =
    call.status === "cancelled" && call.reasonMessage ? textBlock(call.reasonMessage) : null;
  return [
    h("p", { class: "small-label" }, `${call.toolName}${chosen ? ` · ${chosen}` : ""}`),
    input
      ? h("pre", { class: "tool-code", tabindex: 0, role: "group", "aria-label": "Input" }, input)
      : null,
    reason,
    ...("content" in call ? contentBlocks(call.content ?? []) : []),
    "structuredContent" in call && call.structuredContent && !(call.content?.length ?? 0)
      ? h(
          "pre",
          { class: "tool-code", tabindex: 0 },
          JSON.stringify(call.structuredContent, null, 2),
        )
      : null,
  ];
}
