// Written by docs/typescript.py from the shapes in schemas/.

/** Any public action, as envelopes carry it. */
export type Action = RootConfigChanged | TurnStarted | TurnCancelled | Truncated | ToolCallConfirmed | ToolCallComplete | ToolCallResultConfirmed | ToolCallContentChanged | InputAnswerChanged | InputCompleted | PendingMessageSet | PendingMessageRemoved | QueuedMessagesReordered | TitleChanged | ModelChanged | AgentChanged | IsReadChanged | IsArchivedChanged | ConfigChanged | ActiveClientChanged | ActiveClientToolsChanged | CustomizationToggled | RootAgentsChanged | RootActiveSessionsChanged | RootTerminalsChanged | Ready | CreationFailed | Delta | Reasoning | ResponsePartAdded | TurnComplete | TurnFailed | Usage | ToolCallStart | ToolCallDelta | ToolCallReady | InputRequested | ActivityChanged | MetaChanged | ChangesetsChanged | ServerToolsChanged | CustomizationsChanged | CustomizationUpdated | CustomizationRemoved | McpServerStateChanged;

export interface ActionEnvelope {
  readonly channel: string;
  readonly action: Action;
  readonly serverSeq: number;
  readonly origin?: ActionOrigin;
  readonly _meta?: EnvelopeMeta;
}

export interface ActionNotification {
  readonly method: "action";
  readonly jsonrpc: "2.0";
  readonly params: ActionEnvelope;
}

/** The client that dispatched the action; host actions have none. */
export interface ActionOrigin {
  readonly clientId: string;
  readonly clientSeq: number;
}

export interface ActiveClient {
  readonly clientId: string;
  readonly tools: readonly ToolDefinition[];
  readonly displayName?: string;
  readonly customizations?: readonly ClientPlugin[];
}

/** `activeClient` is `null` on the wire, not absent, when the role is released. */
export interface ActiveClientChanged {
  readonly type: "session/activeClientChanged";
  readonly activeClient: ActiveClient | null;
}

/** The tools that the active client provides, all of them. */
export interface ActiveClientToolsChanged {
  readonly type: "session/activeClientToolsChanged";
  readonly tools: readonly ToolDefinition[];
}

export interface ActiveTurn {
  readonly id: string;
  readonly message: Message;
  readonly responseParts: readonly ResponsePart[];
  readonly usage?: UsageInfo;
}

/** What the session is doing, in words. */
export interface ActivityChanged {
  readonly type: "session/activityChanged";
  readonly activity?: string;
}

/** The session uses another custom agent, or none, from the next turn on. */
export interface AgentChanged {
  readonly type: "session/agentChanged";
  readonly agent?: AgentSelection;
}

export interface AgentDispatchAction {
  readonly method: "dispatchAction";
  readonly jsonrpc: "2.0";
  readonly id?: number | string;
  readonly params: AgentDispatchActionParams;
}

/** The same from a connection of role `agent`, which may say host actions too. */
export interface AgentDispatchActionParams {
  readonly channel: string;
  readonly clientSeq: number;
  readonly action: Action;
}

export interface AgentEntry {
  readonly type: "agent";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly description?: string;
  readonly _meta?: { readonly [key: string]: any };
}

/** What a connection of role `agent` may send. */
export type AgentFrame = Initialize | Ping | Reconnect | Subscribe | CreateSession | DisposeSession | ListSessions | FetchTurns | Authenticate | ResolveSessionConfig | SessionConfigCompletions | Completions | Unsubscribe | PresenceUpdate | AgentDispatchAction;

export interface AgentInfo {
  readonly provider: string;
  readonly displayName: string;
  readonly description: string;
  readonly models: readonly ModelInfo[];
  readonly protectedResources?: readonly ProtectedResource[];
  readonly customizations?: readonly Customization[];
}

export interface AgentSelection {
  readonly uri: string;
}

/** What a question holds: a draft, a submitted answer, or a skip. */
export type Answer = Draft | Submitted | Skipped;

/** Host extension: who gave this answer, when and how. Always the host's, never a client's. `covers` is the answer that a draft was written over. If it was submitted or skipped, it still counts until the draft is submitted, and it comes back when the draft is cleared. `before_change`: it was given before the question changed, and has to be submitted again. */
export interface AnswerMeta {
  readonly by?: Author;
  readonly at?: number;
  readonly via?: Provenance;
  readonly covers?: Answer;
  readonly beforeChange?: boolean;
}

export type Attachment = SimpleAttachment | EmbeddedResourceAttachment | ResourceAttachment;

export interface AuthRequired {
  readonly method: "auth/required";
  readonly jsonrpc: "2.0";
  readonly params: AuthRequiredParams;
}

export interface AuthRequiredData {
  readonly resources: readonly ProtectedResource[];
}

export interface AuthRequiredParams {
  readonly channel: string;
  readonly resource: string;
  readonly reason?: AuthRequiredReason;
}

export type AuthRequiredReason = "expired" | "insufficientScope" | "required";

export interface Authenticate {
  readonly method: "authenticate";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: AuthenticateParams;
}

export interface AuthenticateParams {
  readonly channel: "ahp-root://";
  readonly resource: string;
  readonly token: string;
}

/** Nothing to say: that it came at all means that the token was taken. */
export interface AuthenticateResult {
}

/** A principal as others see it: in envelopes, beside answers, in outcomes. */
export interface Author {
  readonly id: string;
  readonly name?: string;
}

export interface BooleanQuestion {
  readonly kind: "boolean";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly defaultValue?: boolean;
}

export interface BooleanValue {
  readonly kind: "boolean";
  readonly value: boolean;
}

export type CancellationReason = "denied" | "result-denied" | "skipped";

export interface Cancelled {
  readonly status: "cancelled";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly reason: CancellationReason;
  readonly reasonMessage?: string | Markdown;
  readonly userSuggestion?: Message;
  readonly selectedOption?: ConfirmationOption;
}

export interface ChangesSummary {
  readonly additions?: number;
  readonly deletions?: number;
  readonly files?: number;
}

export interface Changeset {
  readonly label: string;
  readonly uriTemplate: string;
  readonly changeKind: string;
  readonly description?: string;
}

/** The changesets on offer, all of them. */
export interface ChangesetsChanged {
  readonly type: "session/changesetsChanged";
  readonly changesets?: readonly Changeset[];
}

/** An entry inside a plugin or a directory. */
export type ChildCustomization = McpServer | AgentEntry | SkillEntry | PromptEntry | RuleEntry | HookEntry;

/** What any client may dispatch. */
export type ClientAction = RootConfigChanged | TurnStarted | TurnCancelled | Truncated | ToolCallConfirmed | ToolCallComplete | ToolCallResultConfirmed | ToolCallContentChanged | InputAnswerChanged | InputCompleted | PendingMessageSet | PendingMessageRemoved | QueuedMessagesReordered | TitleChanged | ModelChanged | AgentChanged | IsReadChanged | IsArchivedChanged | ConfigChanged | ActiveClientChanged | ActiveClientToolsChanged | CustomizationToggled;

export interface ClientCapabilities {
  readonly mcpApps?: { readonly [key: string]: any };
}

export interface ClientContributor {
  readonly kind: "client";
  readonly clientId: string;
}

/** What a client may send. */
export type ClientFrame = Initialize | Ping | Reconnect | Subscribe | CreateSession | DisposeSession | ListSessions | FetchTurns | Authenticate | ResolveSessionConfig | SessionConfigCompletions | Completions | Unsubscribe | PresenceUpdate | DispatchAction;

/** A plugin that a client contributes; its nonce lets the host see that it changed. */
export interface ClientPlugin {
  readonly type: "plugin";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly enabled: boolean;
  readonly clientId?: string;
  readonly load?: LoadState;
  readonly children?: readonly ChildCustomization[];
  readonly nonce?: string;
}

export interface Completed {
  readonly status: "completed";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly confirmed: ConfirmationReason;
  readonly selectedOption?: ConfirmationOption;
  readonly success: boolean;
  readonly pastTenseMessage: string | Markdown;
  readonly content?: readonly ToolContent[];
  readonly structuredContent?: { readonly [key: string]: any };
  readonly error?: ToolError;
}

export interface CompletionItem {
  readonly insertText: string;
  readonly attachment: Attachment;
  readonly rangeStart?: number;
  readonly rangeEnd?: number;
}

/** Host extension, written by clients: with it, a completion of anything else is refused. */
export interface CompletionMeta {
  readonly reviewed?: Reviewed;
}

export interface Completions {
  readonly method: "completions";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: CompletionsParams;
}

export interface CompletionsParams {
  readonly channel: string;
  readonly kind: string;
  readonly text: string;
  readonly offset: number;
}

export interface CompletionsResult {
  readonly items: readonly CompletionItem[];
}

/** New values of the session's configuration: merged, or with `replace` all there are. */
export interface ConfigChanged {
  readonly type: "session/configChanged";
  readonly config: { readonly [key: string]: any };
  readonly replace?: boolean;
}

export interface ConfigPropertySchema {
  readonly type: "array" | "boolean" | "number" | "object" | "string";
  readonly title: string;
  readonly description?: string;
  readonly default?: any;
  readonly enum?: readonly string[];
  readonly enumLabels?: readonly string[];
  readonly enumDescriptions?: readonly string[];
  readonly readOnly?: boolean;
  readonly items?: ConfigPropertySchema;
  readonly properties?: { readonly [key: string]: ConfigPropertySchema };
  readonly required?: readonly string[];
}

export interface ConfigSchema {
  readonly type: "object";
  readonly properties: { readonly [key: string]: ConfigPropertySchema };
  readonly required?: readonly string[];
}

export interface ConfigValueItem {
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

export interface ConfirmationOption {
  readonly id: string;
  readonly label: string;
  readonly kind: ConfirmationOptionKind;
  readonly group?: number;
}

export type ConfirmationOptionKind = "approve" | "deny";

export type ConfirmationReason = "not-needed" | "setting" | "user-action";

export interface ContentRef {
  readonly uri: string;
  readonly sizeHint?: number;
  readonly contentType?: string;
}

export interface ContentRefPart {
  readonly kind: "contentRef";
  readonly uri: string;
  readonly sizeHint?: number;
  readonly contentType?: string;
}

/** Where a tool comes from. */
export type Contributor = ClientContributor | McpContributor;

export interface CreateSession {
  readonly method: "createSession";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: CreateSessionParams;
}

export interface CreateSessionParams {
  readonly channel: string;
  readonly provider?: string;
  readonly model?: ModelSelection;
  readonly agent?: AgentSelection;
  readonly workingDirectory?: string;
  readonly fork?: ForkSource;
  readonly config?: { readonly [key: string]: any };
  readonly activeClient?: ActiveClient;
}

/** The session could not be made. */
export interface CreationFailed {
  readonly type: "session/creationFailed";
  readonly error: ErrorInfo;
}

/** A top-level entry: a plugin, a directory or an MCP server. */
export type Customization = Plugin | Directory | McpServer;

/** A customization, or one inside it, is gone. */
export interface CustomizationRemoved {
  readonly type: "session/customizationRemoved";
  readonly id: string;
}

/** A customization is switched on or off. */
export interface CustomizationToggled {
  readonly type: "session/customizationToggled";
  readonly id: string;
  readonly enabled: boolean;
}

/** A customization is added, or replaced under its id. */
export interface CustomizationUpdated {
  readonly type: "session/customizationUpdated";
  readonly customization: Customization;
}

/** The customizations, all of them. */
export interface CustomizationsChanged {
  readonly type: "session/customizationsChanged";
  readonly customizations: readonly Customization[];
}

export interface Degraded {
  readonly kind: "degraded";
  readonly message: string;
}

/** More text for a markdown part. */
export interface Delta {
  readonly type: "session/delta";
  readonly turnId: string;
  readonly partId: string;
  readonly content: string;
}

export interface Directory {
  readonly type: "directory";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly enabled: boolean;
  readonly clientId?: string;
  readonly load?: LoadState;
  readonly children?: readonly ChildCustomization[];
  readonly contents: string;
  readonly writable: boolean;
}

export interface DispatchAction {
  readonly method: "dispatchAction";
  readonly jsonrpc: "2.0";
  readonly id?: number | string;
  readonly params: DispatchActionParams;
}

export interface DispatchActionParams {
  readonly channel: string;
  readonly clientSeq: number;
  readonly action: ClientAction;
}

export interface DisposeSession {
  readonly method: "disposeSession";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: Params;
}

/** Shared as it is typed; it never counts as an answer. The rules refuse one without value. */
export interface Draft {
  readonly state: "draft";
  readonly _meta?: AnswerMeta;
  readonly value?: Value;
}

export interface EditingPlace {
  readonly requestId: string;
  readonly questionId: string;
}

export interface EmbeddedResourceAttachment {
  readonly type: "embeddedResource";
  readonly label: string;
  readonly range?: TextRange;
  readonly displayKind?: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly data: string;
  readonly contentType: string;
  readonly selection?: TextSelection;
}

export interface EmbeddedResourceContent {
  readonly type: "embeddedResource";
  readonly data: string;
  readonly contentType: string;
}

/** Host extension: when the action was accepted, and whose it really was. */
export interface EnvelopeMeta {
  readonly at: number;
  readonly by?: Author;
}

export type ErrorCode = -32700 | -32600 | -32601 | -32602 | -32603 | -32001 | -32002 | -32003 | -32004 | -32005 | -32006 | -32007 | -32008 | -32009 | -32010 | -32011;

export interface ErrorInfo {
  readonly errorType: string;
  readonly message: string;
  readonly stack?: string;
}

/** `id` is `null` when the request's could not be read. */
export interface Failure {
  readonly jsonrpc: "2.0";
  readonly id: number | string | null;
  readonly error: RpcError;
}

export interface FetchTurns {
  readonly method: "fetchTurns";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: FetchTurnsParams;
}

export interface FetchTurnsParams {
  readonly channel: string;
  readonly before?: string;
  readonly limit?: number;
}

export interface FetchTurnsResult {
  readonly turns: readonly Turn[];
  readonly hasMore: boolean;
}

export interface FileDiff {
  readonly added?: number;
  readonly removed?: number;
}

export interface FileEdit {
  readonly before?: FileVersion;
  readonly after?: FileVersion;
  readonly diff?: FileDiff;
}

export interface FileEditContent {
  readonly type: "fileEdit";
  readonly before?: FileVersion;
  readonly after?: FileVersion;
  readonly diff?: FileDiff;
}

export interface FileEdits {
  readonly items: readonly FileEdit[];
}

export interface FileVersion {
  readonly uri: string;
  readonly content: string | ContentRef;
}

export interface ForkSource {
  readonly session: string;
  readonly turnId: string;
}

export interface HookEntry {
  readonly type: "hook";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
}

/** What only the host, or a connection of role `agent`, may say. */
export type HostAction = RootAgentsChanged | RootActiveSessionsChanged | RootTerminalsChanged | Ready | CreationFailed | Delta | Reasoning | ResponsePartAdded | TurnComplete | TurnFailed | Usage | ToolCallStart | ToolCallDelta | ToolCallReady | InputRequested | ActivityChanged | MetaChanged | ChangesetsChanged | ServerToolsChanged | CustomizationsChanged | CustomizationUpdated | CustomizationRemoved | McpServerStateChanged;

/** What the host sends. */
export type HostFrame = HostNotification | RejectionNotification | Result | Failure;

/** What the host sends unasked. */
export type HostNotification = ActionNotification | SessionAdded | SessionRemoved | SessionSummaryChanged | AuthRequired | PresenceChanged;

export interface Icon {
  readonly src: string;
  readonly contentType?: string;
  readonly sizes?: readonly string[];
  readonly theme?: string;
}

export interface Initialize {
  readonly method: "initialize";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: InitializeParams;
}

export interface InitializeParams {
  readonly channel: "ahp-root://";
  readonly protocolVersions: readonly string[];
  readonly clientId: string;
  readonly initialSubscriptions?: readonly string[];
  readonly locale?: string;
  readonly capabilities?: ClientCapabilities;
}

export interface InitializeResult {
  readonly protocolVersion: string;
  readonly serverSeq: number;
  readonly snapshots: readonly Snapshot[];
  readonly defaultDirectory?: string;
  readonly completionTriggerCharacters?: readonly string[];
  readonly telemetry?: TelemetryCapabilities;
}

/** One answer is drafted, submitted, skipped, or cleared when `answer` is absent. */
export interface InputAnswerChanged {
  readonly type: "session/inputAnswerChanged";
  readonly requestId: string;
  readonly questionId: string;
  readonly answer?: Answer;
}

/** A question is closed; the answers it brings go over those it has. With `_meta.reviewed` it is refused if something else would be sent than was reviewed. */
export interface InputCompleted {
  readonly type: "session/inputCompleted";
  readonly requestId: string;
  readonly response: ResponseKind;
  readonly answers?: { readonly [key: string]: Answer };
  readonly _meta?: CompletionMeta;
}

export interface InputRequest {
  readonly id: string;
  readonly message?: string;
  readonly url?: string;
  readonly questions?: readonly Question[];
  readonly answers?: { readonly [key: string]: Answer };
  readonly _meta?: RequestMeta;
}

/** A question to people is opened, or replaced under its id. */
export interface InputRequested {
  readonly type: "session/inputRequested";
  readonly request: InputRequest;
}

export interface IntegerQuestion {
  readonly kind: "integer";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly min?: number;
  readonly max?: number;
  readonly defaultValue?: number;
}

/** The session was put away, or taken out again. */
export interface IsArchivedChanged {
  readonly type: "session/isArchivedChanged";
  readonly isArchived: boolean;
}

/** Somebody has seen the session, or wants it to look unseen. */
export interface IsReadChanged {
  readonly type: "session/isReadChanged";
  readonly isRead: boolean;
}

export type Lifecycle = "creating" | "creationFailed" | "ready";

export interface ListChanged {
  readonly listChanged?: boolean;
}

export interface ListSessions {
  readonly method: "listSessions";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: ListSessionsParams;
}

export interface ListSessionsParams {
  readonly channel: "ahp-root://";
  readonly filter?: { readonly [key: string]: any };
}

export interface ListSessionsResult {
  readonly items: readonly SessionSummary[];
}

export interface LoadFailed {
  readonly kind: "error";
  readonly message: string;
}

/** How far a plugin or directory has been loaded. */
export type LoadState = Loading | Loaded | Degraded | LoadFailed;

export interface Loaded {
  readonly kind: "loaded";
}

export interface Loading {
  readonly kind: "loading";
}

/** Text that may be rendered as Markdown; a plain `str` may not. */
export interface Markdown {
  readonly markdown: string;
}

export interface MarkdownPart {
  readonly kind: "markdown";
  readonly id: string;
  readonly content: string;
}

export interface McpApps {
  readonly capabilities: McpUiCapabilities;
}

export interface McpAuthRequired {
  readonly kind: "authRequired";
  readonly reason: AuthRequiredReason;
  readonly resource: ProtectedResource;
  readonly requiredScopes?: readonly string[];
  readonly description?: string;
}

export interface McpContributor {
  readonly kind: "mcp";
  readonly customizationId: string;
}

export interface McpFailed {
  readonly kind: "error";
  readonly error: ErrorInfo;
}

export interface McpReady {
  readonly kind: "ready";
}

export interface McpServer {
  readonly type: "mcpServer";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly enabled: boolean;
  readonly state: McpServerState;
  readonly channel?: string;
  readonly mcpApp?: McpApps;
}

/** Where an MCP server stands. */
export type McpServerState = McpStarting | McpReady | McpAuthRequired | McpFailed | McpStopped;

/** Where an MCP server stands now. */
export interface McpServerStateChanged {
  readonly type: "session/mcpServerStateChanged";
  readonly id: string;
  readonly state: McpServerState;
  readonly channel?: string;
}

export interface McpStarting {
  readonly kind: "starting";
}

export interface McpStopped {
  readonly kind: "stopped";
}

export interface McpUiCapabilities {
  readonly serverTools?: ListChanged;
  readonly serverResources?: ListChanged;
  readonly logging?: { readonly [key: string]: any };
  readonly sampling?: { readonly [key: string]: any };
}

export interface Message {
  readonly text: string;
  readonly origin: MessageOrigin;
  readonly attachments?: readonly Attachment[];
  readonly _meta?: { readonly [key: string]: any };
}

/** `kind` is open: `user`, `agent`, `tool`, `systemNotification`, and what comes later. */
export interface MessageOrigin {
  readonly kind: string;
}

/** The session's free-form metadata, as a whole. */
export interface MetaChanged {
  readonly type: "session/metaChanged";
  readonly _meta?: { readonly [key: string]: any };
}

/** The session uses another model, from the next turn on. */
export interface ModelChanged {
  readonly type: "session/modelChanged";
  readonly model: ModelSelection;
}

export interface ModelInfo {
  readonly id: string;
  readonly provider: string;
  readonly name: string;
  readonly maxContextWindow?: number;
  readonly supportsVision?: boolean;
  readonly policyState?: PolicyState;
  readonly configSchema?: ConfigSchema;
  readonly _meta?: { readonly [key: string]: any };
}

export interface ModelSelection {
  readonly id: string;
  readonly config?: { readonly [key: string]: string };
}

export interface MultiSelectQuestion {
  readonly kind: "multi-select";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly options: readonly Option[];
  readonly allowFreeformInput?: boolean;
  readonly min?: number;
  readonly max?: number;
}

export interface NumberQuestion {
  readonly kind: "number";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly min?: number;
  readonly max?: number;
  readonly defaultValue?: number;
}

export interface NumberValue {
  readonly kind: "number";
  readonly value: number;
}

/** What a deadline brings: `cancel` is hard; `defaults` stops for good at the first draft. */
export type OnExpiry = "cancel" | "defaults" | "wait";

export interface Option {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
  readonly recommended?: boolean;
}

/** Every command names its channel; connection-level ones name the root. */
export interface Params {
  readonly channel: string;
}

export interface PendingConfirmation {
  readonly status: "pending-confirmation";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly confirmationTitle?: string | Markdown;
  readonly edits?: FileEdits;
  readonly editable?: boolean;
  readonly options?: readonly ConfirmationOption[];
}

export type PendingKind = "queued" | "steering";

export interface PendingMessage {
  readonly id: string;
  readonly message: Message;
}

/** A waiting message was taken up or withdrawn. */
export interface PendingMessageRemoved {
  readonly type: "session/pendingMessageRemoved";
  readonly kind: PendingKind;
  readonly id: string;
}

/** A message waits: to steer the turn, or in the queue for a next one. */
export interface PendingMessageSet {
  readonly type: "session/pendingMessageSet";
  readonly kind: PendingKind;
  readonly id: string;
  readonly message: Message;
}

/** It has run, but the result may not be used yet. */
export interface PendingResultConfirmation {
  readonly status: "pending-result-confirmation";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly confirmed: ConfirmationReason;
  readonly selectedOption?: ConfirmationOption;
  readonly success: boolean;
  readonly pastTenseMessage: string | Markdown;
  readonly content?: readonly ToolContent[];
  readonly structuredContent?: { readonly [key: string]: any };
  readonly error?: ToolError;
}

export interface PermissionDeniedData {
  readonly request?: { readonly [key: string]: any };
}

export interface Ping {
  readonly method: "ping";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: RootParams;
}

export interface Plugin {
  readonly type: "plugin";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly enabled: boolean;
  readonly clientId?: string;
  readonly load?: LoadState;
  readonly children?: readonly ChildCustomization[];
}

export type PolicyState = "disabled" | "enabled" | "unconfigured";

export interface PresenceChanged {
  readonly method: "presence/changed";
  readonly jsonrpc: "2.0";
  readonly params: PresenceChangedParams;
}

export interface PresenceChangedParams {
  readonly channel: string;
  readonly present: readonly Present[];
}

export interface PresenceUpdate {
  readonly method: "presence/update";
  readonly jsonrpc: "2.0";
  readonly id?: number | string;
  readonly params: PresenceUpdateParams;
}

export interface PresenceUpdateParams {
  readonly channel: string;
  readonly editing?: EditingPlace;
  readonly idle?: boolean;
  readonly name?: string;
}

/** `role` lets a client say why its own controls are off, and show who can answer. */
export interface Present {
  readonly clientId: string;
  readonly by: Author;
  readonly role?: Role;
  readonly editing?: EditingPlace;
  readonly idle?: boolean;
}

export interface ProjectInfo {
  readonly uri: string;
  readonly displayName: string;
}

export interface PromptEntry {
  readonly type: "prompt";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly description?: string;
}

/** RFC 9728 metadata; its field names are the RFC's. */
export interface ProtectedResource {
  readonly resource: string;
  readonly resource_name?: string;
  readonly authorization_servers?: readonly string[];
  readonly jwks_uri?: string;
  readonly scopes_supported?: readonly string[];
  readonly bearer_methods_supported?: readonly string[];
  readonly resource_signing_alg_values_supported?: readonly string[];
  readonly resource_encryption_alg_values_supported?: readonly string[];
  readonly resource_encryption_enc_values_supported?: readonly string[];
  readonly resource_documentation?: string;
  readonly resource_policy_uri?: string;
  readonly resource_tos_uri?: string;
  readonly required?: boolean;
}

/** How an answer or an outcome came about; a timeout is never a person's decline. `proposed` is what an asker filled in beforehand: a draft that nobody has submitted. */
export type Provenance = "abandoned" | "default" | "person" | "policy" | "proposed" | "timeout" | "withdrawn";

/** A typed question of an input request. */
export type Question = TextQuestion | NumberQuestion | IntegerQuestion | BooleanQuestion | SingleSelectQuestion | MultiSelectQuestion;

/** Host extension: a pattern that a text answer must match (RE2 syntax, searched). */
export interface QuestionMeta {
  readonly pattern?: string;
}

/** A new order of the queue; what it leaves out stays at the end. */
export interface QueuedMessagesReordered {
  readonly type: "session/queuedMessagesReordered";
  readonly order: readonly string[];
}

/** The session can be used. */
export interface Ready {
  readonly type: "session/ready";
}

/** More text for a reasoning part. */
export interface Reasoning {
  readonly type: "session/reasoning";
  readonly turnId: string;
  readonly partId: string;
  readonly content: string;
}

export interface ReasoningPart {
  readonly kind: "reasoning";
  readonly id: string;
  readonly content: string;
}

export interface Reconnect {
  readonly method: "reconnect";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: ReconnectParams;
}

export interface ReconnectParams {
  readonly channel: "ahp-root://";
  readonly clientId: string;
  readonly lastSeenServerSeq: number;
  readonly subscriptions: readonly string[];
}

export interface ReconnectReplay {
  readonly type: "replay";
  readonly actions: readonly ActionEnvelope[];
  readonly missing: readonly string[];
}

/** How a client catches up. */
export type ReconnectResult = ReconnectReplay | ReconnectSnapshot;

export interface ReconnectSnapshot {
  readonly type: "snapshot";
  readonly snapshots: readonly Snapshot[];
}

/** A refused action, echoed to its sender alone; it consumes no `serverSeq`. The action is raw because even one that could not be decoded is answered. */
export interface RejectionEnvelope {
  readonly channel: string;
  readonly action: any;
  readonly serverSeq: number;
  readonly origin: ActionOrigin;
  readonly rejectionReason: string;
  readonly _meta?: RejectionMeta;
}

/** Host extension: why, for programs, and which question it is about. */
export interface RejectionMeta {
  readonly code: string;
  readonly requestId?: string;
  readonly questionId?: string;
}

export interface RejectionNotification {
  readonly method: "action";
  readonly jsonrpc: "2.0";
  readonly params: RejectionEnvelope;
}

/** Host extension: who asks. A page shows one form per (call, round). `revision` counts how often the text or the questions were changed; absent is 0. With a `lease` the asker promises to wait for the answer: if it has been away for this many seconds, `asker_gone_since` says since when, until it comes back. */
export interface RequestMeta {
  readonly by?: Author;
  readonly revision?: number;
  readonly call?: string;
  readonly round?: number;
  readonly key?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly expiresAt?: number;
  readonly onExpiry?: OnExpiry;
  readonly lease?: number;
  readonly askerGoneSince?: number;
}

export interface ResolveSessionConfig {
  readonly method: "resolveSessionConfig";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: ResolveSessionConfigParams;
}

export interface ResolveSessionConfigParams {
  readonly channel: "ahp-root://";
  readonly provider?: string;
  readonly workingDirectory?: string;
  readonly config?: { readonly [key: string]: any };
}

export interface ResolveSessionConfigResult {
  readonly schema: SessionConfigSchema;
  readonly values: { readonly [key: string]: any };
}

export interface ResourceAttachment {
  readonly type: "resource";
  readonly label: string;
  readonly range?: TextRange;
  readonly displayKind?: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly uri: string;
  readonly sizeHint?: number;
  readonly contentType?: string;
  readonly selection?: TextSelection;
}

export interface ResourceContent {
  readonly type: "resource";
  readonly uri: string;
  readonly sizeHint?: number;
  readonly contentType?: string;
}

export type ResponseKind = "accept" | "cancel" | "decline";

/** One piece of an agent's response. */
export type ResponsePart = MarkdownPart | ReasoningPart | ContentRefPart | ToolCallPart | SystemNotificationPart;

/** A new part of the response. */
export interface ResponsePartAdded {
  readonly type: "session/responsePart";
  readonly turnId: string;
  readonly part: ResponsePart;
}

/** A void result is `null`, never missing. */
export interface Result {
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly result: any;
}

/** What an accepting person was shown: the questions by their revision, and the whole content. `content` holds plain values by question, exactly as they are expected to be sent. */
export interface Reviewed {
  readonly content: { readonly [key: string]: any };
  readonly revision?: number;
}

export type Role = "agent" | "answerer" | "observer" | "owner";

/** How many sessions there are. */
export interface RootActiveSessionsChanged {
  readonly type: "root/activeSessionsChanged";
  readonly activeSessions: number;
}

/** The agents that sessions can be made with, all of them. */
export interface RootAgentsChanged {
  readonly type: "root/agentsChanged";
  readonly agents: readonly AgentInfo[];
}

/** New values of the host's configuration: merged, or with `replace` all there are. */
export interface RootConfigChanged {
  readonly type: "root/configChanged";
  readonly config: { readonly [key: string]: any };
  readonly replace?: boolean;
}

export interface RootConfigState {
  readonly schema: ConfigSchema;
  readonly values: { readonly [key: string]: any };
}

export interface RootParams {
  readonly channel: "ahp-root://";
}

export interface RootState {
  readonly agents: readonly AgentInfo[];
  readonly activeSessions?: number;
  readonly terminals?: readonly TerminalInfo[];
  readonly config?: RootConfigState;
}

/** The known terminals, all of them. */
export interface RootTerminalsChanged {
  readonly type: "root/terminalsChanged";
  readonly terminals: readonly TerminalInfo[];
}

export interface RpcError {
  readonly code: ErrorCode | number;
  readonly message: string;
  readonly data?: any;
}

export interface RuleEntry {
  readonly type: "rule";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly description?: string;
  readonly alwaysApply?: boolean;
  readonly globs?: readonly string[];
}

export interface Running {
  readonly status: "running";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly confirmed: ConfirmationReason;
  readonly selectedOption?: ConfirmationOption;
  readonly content?: readonly ToolContent[];
}

export interface SelectedManyValue {
  readonly kind: "selected-many";
  readonly value: readonly string[];
  readonly freeformValues?: readonly string[];
}

export interface SelectedValue {
  readonly kind: "selected";
  readonly value: string;
  readonly freeformValues?: readonly string[];
}

/** The tools that the host provides, all of them. */
export interface ServerToolsChanged {
  readonly type: "session/serverToolsChanged";
  readonly tools: readonly ToolDefinition[];
}

export interface SessionAdded {
  readonly method: "root/sessionAdded";
  readonly jsonrpc: "2.0";
  readonly params: SessionAddedParams;
}

export interface SessionAddedParams {
  readonly channel: string;
  readonly summary: SessionSummary;
}

export interface SessionConfigCompletions {
  readonly method: "sessionConfigCompletions";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: SessionConfigCompletionsParams;
}

export interface SessionConfigCompletionsParams {
  readonly channel: "ahp-root://";
  readonly provider?: string;
  readonly workingDirectory?: string;
  readonly config?: { readonly [key: string]: any };
  readonly property: string;
  readonly query?: string;
}

export interface SessionConfigCompletionsResult {
  readonly items: readonly ConfigValueItem[];
}

export interface SessionConfigPropertySchema {
  readonly type: "array" | "boolean" | "number" | "object" | "string";
  readonly title: string;
  readonly description?: string;
  readonly default?: any;
  readonly enum?: readonly string[];
  readonly enumLabels?: readonly string[];
  readonly enumDescriptions?: readonly string[];
  readonly readOnly?: boolean;
  readonly items?: ConfigPropertySchema;
  readonly properties?: { readonly [key: string]: ConfigPropertySchema };
  readonly required?: readonly string[];
  readonly enumDynamic?: boolean;
  readonly sessionMutable?: boolean;
}

export interface SessionConfigSchema {
  readonly type: "object";
  readonly properties: { readonly [key: string]: SessionConfigPropertySchema };
  readonly required?: readonly string[];
}

export interface SessionConfigState {
  readonly schema: SessionConfigSchema;
  readonly values: { readonly [key: string]: any };
}

export interface SessionRemoved {
  readonly method: "root/sessionRemoved";
  readonly jsonrpc: "2.0";
  readonly params: SessionRemovedParams;
}

export interface SessionRemovedParams {
  readonly channel: string;
  readonly session: string;
}

export interface SessionState {
  readonly summary: SessionSummary;
  readonly lifecycle: Lifecycle;
  readonly turns: readonly Turn[];
  readonly creationError?: ErrorInfo;
  readonly serverTools?: readonly ToolDefinition[];
  readonly activeClient?: ActiveClient;
  readonly activeTurn?: ActiveTurn;
  readonly steeringMessage?: PendingMessage;
  readonly queuedMessages?: readonly PendingMessage[];
  readonly inputRequests?: readonly InputRequest[];
  readonly config?: SessionConfigState;
  readonly customizations?: readonly Customization[];
  readonly changesets?: readonly Changeset[];
  readonly _meta?: { readonly [key: string]: any };
}

export interface SessionSummary {
  readonly resource: string;
  readonly provider: string;
  readonly title: string;
  readonly status: Status;
  readonly createdAt: number;
  readonly modifiedAt: number;
  readonly activity?: string;
  readonly project?: ProjectInfo;
  readonly model?: ModelSelection;
  readonly agent?: AgentSelection;
  readonly workingDirectory?: string;
  readonly changes?: ChangesSummary;
  readonly _meta?: SummaryMeta;
}

export interface SessionSummaryChanged {
  readonly method: "root/sessionSummaryChanged";
  readonly jsonrpc: "2.0";
  readonly params: SessionSummaryChangedParams;
}

export interface SessionSummaryChangedParams {
  readonly channel: string;
  readonly session: string;
  readonly changes: SummaryChanges;
}

export interface SimpleAttachment {
  readonly type: "simple";
  readonly label: string;
  readonly range?: TextRange;
  readonly displayKind?: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly modelRepresentation?: string;
}

export interface SingleSelectQuestion {
  readonly kind: "single-select";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly options: readonly Option[];
  readonly allowFreeformInput?: boolean;
}

export interface SkillEntry {
  readonly type: "skill";
  readonly id: string;
  readonly uri: string;
  readonly name: string;
  readonly icons?: readonly Icon[];
  readonly range?: TextRange;
  readonly description?: string;
  readonly disableModelInvocation?: boolean;
}

export interface Skipped {
  readonly state: "skipped";
  readonly _meta?: AnswerMeta;
  readonly freeformValues?: readonly string[];
}

/** The state of a channel, encoded once for all who ask: `RootState` or `SessionState`. Every later action has `serverSeq > fromSeq`. */
export interface Snapshot {
  readonly resource: string;
  readonly state: RootState | SessionState;
  readonly fromSeq: number;
}

/** Bits 0–4 say what the session does, and are derived; bits 5–6 are people's marks on it. IDLE 1, ERROR 2, IN_PROGRESS 8, INPUT_NEEDED 24, IS_READ 32, IS_ARCHIVED 64 */
export type Status = number;

export interface Streaming {
  readonly status: "streaming";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
  readonly _meta?: { readonly [key: string]: any };
  readonly partialInput?: string;
  readonly invocationMessage?: string | Markdown;
}

export interface SubagentContent {
  readonly type: "subagent";
  readonly resource: string;
  readonly title: string;
  readonly agentName?: string;
  readonly description?: string;
}

export interface Submitted {
  readonly state: "submitted";
  readonly _meta?: AnswerMeta;
  readonly value?: Value;
}

export interface Subscribe {
  readonly method: "subscribe";
  readonly jsonrpc: "2.0";
  readonly id: number | string;
  readonly params: Params;
}

/** Stateless channels, such as presence, have no snapshot. */
export interface SubscribeResult {
  readonly snapshot?: Snapshot;
}

/** The fields of a summary that changed; none is ever `null`. `activity` and `_meta` are empty where there is none any more. That another field was cleared cannot be told: what is left out has not changed. */
export interface SummaryChanges {
  readonly title?: string;
  readonly status?: Status;
  readonly modifiedAt?: number;
  readonly activity?: string;
  readonly project?: ProjectInfo;
  readonly model?: ModelSelection;
  readonly agent?: AgentSelection;
  readonly workingDirectory?: string;
  readonly changes?: ChangesSummary;
  readonly _meta?: SummaryMeta;
}

/** Host extension, in lists of sessions: nobody waits for the answers to its open questions. */
export interface SummaryMeta {
  readonly askersGone?: boolean;
}

export interface SystemNotificationPart {
  readonly kind: "systemNotification";
  readonly content: string | Markdown;
}

export interface TelemetryCapabilities {
  readonly logs?: string;
  readonly traces?: string;
  readonly metrics?: string;
}

/** Who holds a terminal. */
export type TerminalClaim = TerminalClientClaim | TerminalSessionClaim;

export interface TerminalClientClaim {
  readonly kind: "client";
  readonly clientId: string;
}

export interface TerminalContent {
  readonly type: "terminal";
  readonly resource: string;
  readonly title: string;
}

export interface TerminalInfo {
  readonly resource: string;
  readonly title: string;
  readonly claim: TerminalClaim;
  readonly exitCode?: number;
}

export interface TerminalSessionClaim {
  readonly kind: "session";
  readonly session: string;
  readonly turnId?: string;
  readonly toolCallId?: string;
}

export interface TextContent {
  readonly type: "text";
  readonly text: string;
}

export interface TextPosition {
  readonly line: number;
  readonly character: number;
}

export interface TextQuestion {
  readonly kind: "text";
  readonly id: string;
  readonly message: string;
  readonly title?: string;
  readonly required?: boolean;
  readonly _meta?: QuestionMeta;
  readonly format?: string;
  readonly min?: number;
  readonly max?: number;
  readonly defaultValue?: string;
}

export interface TextRange {
  readonly start: TextPosition;
  readonly end: TextPosition;
}

export interface TextSelection {
  readonly range: TextRange;
}

export interface TextValue {
  readonly kind: "text";
  readonly value: string;
}

/** The session has another title. */
export interface TitleChanged {
  readonly type: "session/titleChanged";
  readonly title: string;
}

export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool call in one of its six states. */
export type ToolCall = Streaming | PendingConfirmation | Running | PendingResultConfirmation | Completed | Cancelled;

/** The tool has run; its result may still need a confirmation. */
export interface ToolCallComplete {
  readonly type: "session/toolCallComplete";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly result: ToolResult;
  readonly requiresResultConfirmation?: boolean;
}

/** Approval brings `confirmed`, denial brings `reason`; the rules hold them to it. */
export interface ToolCallConfirmed {
  readonly type: "session/toolCallConfirmed";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly approved: boolean;
  readonly confirmed?: ConfirmationReason;
  readonly editedToolInput?: string;
  readonly reason?: CancellationReason;
  readonly reasonMessage?: string | Markdown;
  readonly userSuggestion?: Message;
  readonly selectedOptionId?: string;
}

/** What a running tool has to show so far. */
export interface ToolCallContentChanged {
  readonly type: "session/toolCallContentChanged";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly content: readonly ToolContent[];
}

/** More of the parameters. */
export interface ToolCallDelta {
  readonly type: "session/toolCallDelta";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly content: string;
  readonly invocationMessage?: string | Markdown;
}

export interface ToolCallPart {
  readonly kind: "toolCall";
  readonly toolCall: ToolCall;
}

/** The parameters are there, or a running call needs another confirmation. */
export interface ToolCallReady {
  readonly type: "session/toolCallReady";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly invocationMessage: string | Markdown;
  readonly toolInput?: string;
  readonly confirmationTitle?: string | Markdown;
  readonly edits?: FileEdits;
  readonly editable?: boolean;
  readonly confirmed?: ConfirmationReason;
  readonly options?: readonly ConfirmationOption[];
}

/** The result may be used, or may not. */
export interface ToolCallResultConfirmed {
  readonly type: "session/toolCallResultConfirmed";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly approved: boolean;
}

/** A tool call appears; its parameters are still coming. */
export interface ToolCallStart {
  readonly type: "session/toolCallStart";
  readonly turnId: string;
  readonly toolCallId: string;
  readonly _meta?: { readonly [key: string]: any };
  readonly toolName: string;
  readonly displayName: string;
  readonly contributor?: Contributor;
}

/** One piece of what a tool brought back. */
export type ToolContent = TextContent | EmbeddedResourceContent | ResourceContent | FileEditContent | TerminalContent | SubagentContent;

export interface ToolDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: { readonly [key: string]: any };
  readonly outputSchema?: { readonly [key: string]: any };
  readonly annotations?: ToolAnnotations;
  readonly _meta?: { readonly [key: string]: any };
}

export interface ToolError {
  readonly message: string;
  readonly code?: string;
}

export interface ToolResult {
  readonly success: boolean;
  readonly pastTenseMessage: string | Markdown;
  readonly content?: readonly ToolContent[];
  readonly structuredContent?: { readonly [key: string]: any };
  readonly error?: ToolError;
}

/** History after the named turn, or all of it, is dropped. */
export interface Truncated {
  readonly type: "session/truncated";
  readonly turnId?: string;
}

export interface Turn {
  readonly id: string;
  readonly message: Message;
  readonly responseParts: readonly ResponsePart[];
  readonly state: TurnState;
  readonly usage?: UsageInfo;
  readonly error?: ErrorInfo;
}

/** Somebody stopped the turn. */
export interface TurnCancelled {
  readonly type: "session/turnCancelled";
  readonly turnId: string;
}

/** The agent is done with the turn. */
export interface TurnComplete {
  readonly type: "session/turnComplete";
  readonly turnId: string;
}

/** The turn ended in an error. */
export interface TurnFailed {
  readonly type: "session/error";
  readonly turnId: string;
  readonly error: ErrorInfo;
}

/** A message begins a turn; one that waited in the queue leaves it. */
export interface TurnStarted {
  readonly type: "session/turnStarted";
  readonly turnId: string;
  readonly message: Message;
  readonly queuedMessageId?: string;
}

export type TurnState = "cancelled" | "complete" | "error";

export interface Unsubscribe {
  readonly method: "unsubscribe";
  readonly jsonrpc: "2.0";
  readonly id?: number | string;
  readonly params: Params;
}

export interface UnsupportedVersionData {
  readonly supportedVersions: readonly string[];
}

/** What the turn has cost so far. */
export interface Usage {
  readonly type: "session/usage";
  readonly turnId: string;
  readonly usage: UsageInfo;
}

export interface UsageInfo {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly model?: string;
  readonly cacheReadTokens?: number;
  readonly _meta?: { readonly [key: string]: any };
}

/** The value of an answer, in the kind of its question. */
export type Value = TextValue | NumberValue | BooleanValue | SelectedValue | SelectedManyValue;
