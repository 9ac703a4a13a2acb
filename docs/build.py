"""Writes the generated pages into `docs/reference/`; with `--check`, only names the stale ones.

The JSON Schema and the AsyncAPI document of the wire, which nobody reads in a review, go to
`build/reference/`.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docs.cli_reference import cli_page
from docs.error_reference import HEADS, error_rows
from docs.wire_documents import asyncapi, json_schema
from session_server.cli.setting_options import flag_of
from session_server.schemas import limits
from session_server.schemas.documents import ERROR_DATA
from session_server.schemas.errors import ErrorCode, RefusalCode
from session_server.settings import CONFIG_FILE, ENVIRONMENT_PREFIX, Settings

REFERENCE = Path(__file__).parent / "reference"
BUILT = Path(__file__).parent.parent / "build" / "reference"

MEANINGS: dict[RefusalCode, str] = {
    RefusalCode.ROLE: "The sender's role does not allow this action.",
    RefusalCode.OTHER_SESSION: "The sender has access to one session, and it is not this one.",
    RefusalCode.OTHER_CHANNEL: "The action is not one of this channel's.",
    RefusalCode.LIMIT: "Something is longer or more than the [limits](limits.md) allow.",
    RefusalCode.NO_REQUEST: "No such input request is open, and how it ended is not known.",
    RefusalCode.ALREADY_COMPLETED: "The input request has ended; the message says how and by whom.",
    RefusalCode.NO_QUESTION: "The input request has no question with this id.",
    RefusalCode.NO_VALUE: (
        "The answer has no value, or a confirmation does not say how or why it was given."
    ),
    RefusalCode.WRONG_KIND: "The value is not of the question's kind, or not a finite number.",
    RefusalCode.NOT_AN_OPTION: "The value is not one of the question's options.",
    RefusalCode.NO_FREEFORM: "The question takes no values besides its options.",
    RefusalCode.DUPLICATE: "An id is used a second time, or an option is chosen twice.",
    RefusalCode.TOO_SHORT: "The text has fewer characters than the question asks for.",
    RefusalCode.TOO_LONG: "The text has more characters than the question allows.",
    RefusalCode.TOO_SMALL: "The number is below the question's minimum.",
    RefusalCode.TOO_LARGE: "The number is above the question's maximum.",
    RefusalCode.TOO_FEW: "Fewer options are chosen than the question asks for.",
    RefusalCode.TOO_MANY: "More options are chosen than the question allows.",
    RefusalCode.NOT_AN_INTEGER: "The question asks for a whole number.",
    RefusalCode.BAD_FORMAT: "The text is not of the question's format, such as `email` or `date`.",
    RefusalCode.BAD_PATTERN: "The text does not match the question's pattern.",
    RefusalCode.REQUIRED: "A required question has no submitted answer yet.",
    RefusalCode.REVIEW_CHANGED: (
        "Something else would be sent than the sender reviewed; the message names the questions."
    ),
    RefusalCode.BAD_FORM: "The question cannot be asked: nobody could answer it.",
    RefusalCode.TURN_ACTIVE: "A turn is in progress, and only one can be.",
    RefusalCode.NO_TURN: "The turn is not in progress, or does not exist.",
    RefusalCode.PASSIVE_SESSION: "No agent listens in this session; it only asks questions.",
    RefusalCode.NOT_A_USER_MESSAGE: "A client may only send messages whose origin is the user.",
    RefusalCode.WRONG_STATE: "The tool call or the session is not in the state that this needs.",
    RefusalCode.NOT_YOURS: "The tool, role or question belongs to someone else.",
    RefusalCode.NO_OPTION: "The tool call does not offer the option, or it means the opposite.",
    RefusalCode.NOT_EDITABLE: "The input of this tool call cannot be edited.",
    RefusalCode.NO_MESSAGE: "No message with this id is waiting.",
    RefusalCode.NO_CUSTOMIZATION: "The session has no customization with this id.",
    RefusalCode.NOT_CONFIGURABLE: "The setting is unknown or fixed, or does not accept this value.",
    RefusalCode.SUPERSEDED: "It waited for the end of the turn, and a later change replaced it.",
}

LIMIT_MEANINGS: dict[str, str] = {
    "FRAME_BYTES": "Bytes of one frame from a client.",
    "OUTBOX_BYTES": "Bytes that may wait for a slow client before it is disconnected.",
    "OUTBOX_PAUSE_BYTES": "Of these, the number above which no more frames are read from it.",
    "FRAGMENTS_PER_MESSAGE": "Fragments that one WebSocket message may come in.",
    "JSON_DEPTH": "Levels of nesting in one frame.",
    "STORED_DEPTH": "Levels of nesting in what the host itself has written.",
    "QUESTIONS_PER_REQUEST": "Questions in one input request.",
    "OPTIONS_PER_QUESTION": "Options of one question, and chosen ones in one answer.",
    "OPEN_REQUESTS_PER_SESSION": "Input requests that are open in one session at a time.",
    "ANSWER_CHARS": "Characters of one answer, own values included.",
    "FREEFORM_VALUES": "Own values in one answer, besides the options.",
    "TITLE_CHARS": "Characters of a session's title.",
    "ID_CHARS": "Characters of the id of a turn, a request, a question or a waiting message.",
    "SESSIONS_PER_PAGE": "Sessions in one answer to `listSessions` of AHP 0.9 and later.",
    "FOREIGN_SETTINGS": (
        "Changes of settings that this host does not have, per connection of AHP 0.9 and later,"
        " that do not count against the rate limit."
    ),
    "NEEDED_PER_SESSION": "Open questions and waiting tool calls of one session together.",
    "ACTIVE_CLIENTS_PER_SESSION": "Clients of AHP 0.9 and later that are active in one session.",
    "DRAFT_BYTES": "Bytes of the draft of a message in a session, as JSON.",
    "QUEUED_MESSAGES": "Messages that wait for their turn in one session.",
    "QUEUED_BYTES": "Bytes that these messages may have together, as JSON.",
    "SELECTION_BYTES": (
        "Bytes of a session's model, custom agent or working directory, each as JSON: they are in"
        " its summary, which everyone gets who watches the list of sessions."
    ),
    "PATTERN_CHARS": "Characters of a pattern; a longer one is not checked.",
    "ROUNDS_PER_CALL": "Rounds of questions in one call, unless it names a number of its own.",
    "RESTARTS_PER_CALL": "Times that a call may start over.",
    "BACK_OFF_FIRST_MS": (
        "Milliseconds before the first retry of a call whose server only asks to try again; doubled"
        " each time."
    ),
    "BACK_OFF_LIMIT_MS": "Milliseconds that such a wait never exceeds.",
    "REDACTIONS_PER_VALUE": (
        "Places in an MCP server's answer where a repeated secret is hidden; beyond, each text that"
        " holds one is hidden as a whole."
    ),
    "OUTCOMES_KEPT": "Ended input requests that a session remembers.",
    "OUTCOME_BYTES_KEPT": "Bytes that these may have together; the latest one always stays.",
    "OUTCOME_LIFETIME_MS": "Milliseconds for which it remembers them.",
    "FINISHED_CALLS_KEPT": "Ended calls that a session remembers.",
    "FINISHED_CALL_BYTES_KEPT": "Bytes that these may have together; the latest always stays.",
    "NAME_CHARS": "Characters of a person's name.",
    "ACTIONS_PER_SECOND": (
        "Messages per second that one principal may send in the long run, over all its connections"
        " and HTTP requests; more are refused with an error message."
    ),
    "ACTIONS_AT_ONCE": "Messages that it may send in one go after a quiet time.",
    "BYTES_PER_CREDIT": "Bytes of a message for which it counts as one message more.",
    "ANSWER_BYTES_PER_CREDIT": (
        "Bytes of an answer for which the request that it answers counts as one message more."
    ),
    "REQUEST_COST": "Messages that an HTTP request counts as.",
    "CONNECTION_COST": "Messages that opening a connection counts as.",
    "RESERVE_PART": (
        "The part of the limit, as 1 in so many, that a principal's connections share equally on"
        " top of it, so that one that floods does not silence the others."
    ),
    "REFUSALS_BEFORE_CLOSE": (
        "Refused messages before a connection that sends too fast is closed; several connections"
        " of a principal share them."
    ),
    "REFUSALS_WINDOW_SECONDS": "Seconds within which these refusals are counted.",
    "FLOOD_PAUSE_SECONDS": (
        "Seconds that a principal whose connection was closed for sending too fast cannot connect;"
        " doubled each time."
    ),
    "FLOOD_PAUSE_LIMIT_SECONDS": "Seconds that such a pause never exceeds.",
    "FLOOD_MEMORY_SECONDS": "Seconds after which the next pause is a short one again.",
    "ACTIONS_UNSETTLED": "Actions of one connection that wait to be written.",
    "UNSETTLED_BYTES_PER_PRINCIPAL": (
        "Bytes of one principal's messages that wait to be written or for the handshake."
    ),
    "UNSETTLED_BYTES": "The same of all principals together.",
    "PRESENCE_NEWS_PER_SECOND": "Times per second that a session's watchers hear who is there.",
    "PRESENCE_BYTES_PER_SECOND": (
        "Bytes per second of such news to all watchers of a session together; where many watch,"
        " they hear it less often."
    ),
    "EDITING_SECONDS": (
        "Seconds that somebody is shown as writing after their client last reported it."
    ),
    "COMPLETIONS_HELD": (
        "Completions of one session's turn that wait for the calls and questions in it."
    ),
    "REQUESTS_IN_FLIGHT": "Requests of one connection that wait for their answer.",
    "HELD_FRAMES": "Frames of one connection that wait for sessions that are being opened.",
    "FRAMES_BEFORE_HANDSHAKE": "Frames that may come while the handshake is being answered.",
    "SUBSCRIPTIONS_PER_CONNECTION": "Channels that one connection watches.",
    "TURNS_PER_PAGE": "Turns that one `fetchTurns` brings.",
    "CONNECTIONS_PER_PRINCIPAL": "Connections that one principal has at a time.",
    "SESSIONS_PER_HOST": "Sessions that the host holds.",
    "SESSION_BYTES": (
        "Bytes of one session's state as JSON, its private part included. A session that is full"
        " takes only what ends or removes something."
    ),
    "STATE_BYTES_PER_HOST": (
        "Bytes of all sessions' states together. Beyond it no session is made, and sessions larger"
        " than an equal share do not grow."
    ),
    "NODE_LEASE_SECONDS": (
        "Seconds after which other nodes take over the work of one that is silent."
    ),
    "LOADED_BYTES": (
        "Bytes of sessions' states in memory, as JSON. Beyond it, sessions that are idle leave"
        " memory, the one that was idle for the longest first."
    ),
    "IDLE_SECONDS": (
        "Seconds after which a session that nobody watches, and in which nothing is open, leaves"
        " memory."
    ),
    "STORE_SECONDS": ("Seconds that a write waits for a disk that does not answer; then it fails."),
    "CLIENTS_KEPT": "Clients that the host knows when they come back.",
    "CLIENTS_PER_PRINCIPAL": "Of these, the ones of one principal; its oldest make room.",
    "CLIENT_LIFETIME_MS": "Milliseconds after which a client that was not seen is forgotten.",
    "TOKENS_KEPT": "Tokens and share links that are valid at a time.",
    "TOKEN_LIFETIME_LIMIT_SECONDS": "Seconds that a token with an expiry may be valid.",
    "SESSIONS_PER_TOKEN": "Sessions that a limited token may name.",
    "SHARES_PER_SESSION": "Share links of one session that are valid at a time.",
    "SHARE_LIFETIME_SECONDS": "Seconds that a share link is valid, unless it says otherwise.",
    "SHARE_LIFETIME_LIMIT_SECONDS": "Seconds that a share link may be valid.",
    "CONNECTION_TOKEN_CHARS": "Characters that a connection token has at least.",
    "SECRET_CHARS": "Characters that the setting `secret` has at least.",
    "SECRET_VARIETY": "Different characters that a connection token and `secret` have at least.",
    "SECRET_UNPREDICTABLE_CHARS": (
        "Characters of a connection token, `secret` or `secret.key` that do not continue a"
        " sequence, a row of keys or a repetition; fewer are a simple pattern."
    ),
    "FAILED_CREDENTIALS_PER_ADDRESS": (
        "Wrong tokens from one address within the window; more are answered with 429. A right token"
        " always passes."
    ),
    "FAILED_CREDENTIAL_WINDOW_SECONDS": "Seconds of this window.",
    "FAILED_CREDENTIAL_ADDRESSES": "Addresses whose wrong tokens are counted; the oldest go.",
    "FAILED_CREDENTIAL_LOG_LINES": "Log lines about wrong tokens within the window.",
    "CASSETTE_BYTES": "Bytes of a recording that is played back.",
    "CASSETTE_ENTRIES": "Entries of one recording.",
    "ACTIVITY_CHARS": "Characters of the line that says what an agent is doing.",
    "UNREACHED_LIMIT_MS": "Milliseconds that a call waits for a server out of reach.",
    "OPEN_CALLS_PER_SESSION": "Calls that are under way in one session.",
    "RESULT_BYTES": "Bytes of one answer of an MCP server, counted as they arrive.",
    "SHOWN_TEXT_CHARS": "Characters of a call's result that are shown in its turn.",
    "SHOWN_INPUT_CHARS": "Characters of a call's arguments that are shown.",
    "SHOWN_DATA_CHARS": "Characters of a picture in a result; a larger one is left out.",
    "UNCOLLECTED_LIFETIME_MS": "Milliseconds for which a result waits for who asked for it.",
    "ENVELOPES_KEPT": "Envelopes of one channel that are at hand for clients that come back.",
    "ENVELOPE_BYTES_KEPT": "Bytes that these envelopes may have together.",
    "ENVELOPE_BYTES_PER_HOST": (
        "Bytes that the envelopes of all channels may have together; channels that were quiet for"
        " the longest keep none then."
    ),
    "HISTORY_IDLE_MS": (
        "Milliseconds without an action after which a channel keeps no envelopes at hand."
    ),
    "HISTORY_LIFETIME_MS": "Milliseconds after which a channel's old entries are dropped.",
    "DECISIONS_KEPT": (
        "Decisions of one session (completed requests, outcomes, confirmed tool calls) that the log"
        " keeps when what was typed on the way to them is dropped."
    ),
    "DECISION_BYTES_KEPT": "Bytes that these decisions may have together.",
    "DECISION_LIFETIME_MS": "Milliseconds for which they are kept.",
    "SEALED_STATE_SECONDS": "Seconds for which a sealed `requestState` of the gateway is good.",
    "CAPABILITY_SETS": "Different sets of capabilities that one gateway's clients may have.",
    "CAPABILITY_SETS_PER_PRINCIPAL": "Of these, the ones that clients of one principal use.",
    "LOG_MESSAGES_HELD": "Log messages of a server that wait to be passed on to the client of a"
    " call, ten times a second. More are left out, and the client gets their number.",
    "LOG_BYTES_HELD": "Bytes of these messages.",
    "CLIENT_ANSWER_MS": "That an MCP client has for a question that only it can answer, unless"
    " `answerWithin` is configured; then its call is abandoned.",
    "UNATTRIBUTED_QUESTION_SECONDS": "That a question of a 2025-era process waits until it is clear"
    " which of its calls asks.",
    "REMEMBERED_TOOLS": "Tools of one MCP server whose revision is remembered.",
    "MCP_SESSIONS": "Sessions of MCP clients of the older kind at a time.",
    "MCP_SESSIONS_PER_PRINCIPAL": "Of these, the ones of one principal; its idle ones make room.",
    "MCP_REQUESTS_PER_PRINCIPAL": (
        "Requests of one principal's MCP clients in flight at one server, streams included."
    ),
    "MCP_SESSION_IDLE_SECONDS": "Seconds after which such a session that is not used ends.",
    "MCP_BODY_BYTES": "Bytes of one request of an MCP client.",
    "MCP_LISTENERS": "MCP clients that listen for changes of one server at a time.",
    "WATCHED_RESOURCES": "Resources of one MCP server that its clients watch at a time.",
    "WATCHED_RESOURCES_PER_PRINCIPAL": "Of these, the ones that clients of one principal watch.",
    "WAIT_SECONDS": "Seconds that an HTTP request may wait for something to happen.",
    "DEADLINE_SECONDS": "Seconds within which a question that is asked over HTTP must end.",
    "LEASE_SECONDS": (
        "Seconds that an asker of ours (`ask`, `call`, the Python client, MCP clients) may be away"
        " before its questions are marked as left."
    ),
    "LEASE_LIMIT_SECONDS": "Seconds of the longest `lease` that an asker may choose.",
    "IDEMPOTENCY_KEY_CHARS": "Characters of an `Idempotency-Key`.",
    "HEAD_BYTES": "Bytes of the head of an HTTP request; more is 431.",
    "HEAD_LINES": "Headers of an HTTP request; more is 431.",
    "HEAD_SECONDS": "Seconds within which the head of a request has to arrive; later is 408.",
    "PIPELINED_REQUESTS": "Requests that wait for an answer on one HTTP connection.",
    "BODY_PIECES": (
        "Pieces that a body may come in, and one more for every 512 bytes of it; more is 400."
    ),
    "BODY_PERIOD_SECONDS": "Seconds after which a body that still arrives is looked at.",
    "BODY_BYTES_PER_PERIOD": "Bytes of it that have to arrive in this time; fewer is 408.",
    "BODY_BYTES_AFTER_ANSWER": (
        "Bytes of a body that are still read after its request was answered; more closes the"
        " connection."
    ),
    "STALLED_SECONDS": "Seconds after which the reader of a long answer is looked at.",
    "STALLED_BYTES": "Bytes of it that have to be taken in this time; who takes fewer is cut off.",
    "LONG_POLLS_PER_PRINCIPAL": "HTTP requests with `wait` of one principal at a time.",
    "KEEP_ALIVE_SECONDS": "Seconds after which an HTTP connection without a request is closed.",
    "UNAUTHENTICATED_CONNECTIONS": (
        "Connections on which no request with a valid credential is being answered; at most half"
        " of all that fit. For one more, the oldest is closed."
    ),
    "UNAUTHENTICATED_PER_ADDRESS": "Of these, the ones of one address other than this machine's.",
    "DESCRIPTORS_WANTED": "Open files and sockets that `serve` asks the system for.",
    "DESCRIPTORS_RESERVED": "Of these, the ones that are kept for files and tools.",
}

ERROR_MEANINGS: dict[ErrorCode, str] = {
    ErrorCode.PARSE_ERROR: "The frame is not JSON; the answer's `id` is `null`.",
    ErrorCode.INVALID_REQUEST: "The frame is JSON, but not a JSON-RPC 2.0 message.",
    ErrorCode.METHOD_NOT_FOUND: "The host does not offer the method, or not at this moment.",
    ErrorCode.INVALID_PARAMS: "The parameters do not fit the method.",
    ErrorCode.INTERNAL_ERROR: "The host failed; it is not the client's fault.",
    ErrorCode.SESSION_NOT_FOUND: "There is no such session or channel.",
    ErrorCode.PROVIDER_NOT_FOUND: "No agent has this provider name.",
    ErrorCode.SESSION_EXISTS: "The session URI is taken.",
    ErrorCode.TURN_IN_PROGRESS: "The command has to wait until the turn ends.",
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: "The host speaks none of the offered versions.",
    ErrorCode.CONTENT_NOT_FOUND: "There is no such content.",
    ErrorCode.AUTH_REQUIRED: "A protected resource needs a token: call `authenticate`.",
    ErrorCode.NOT_FOUND: "What was named is not known; at `reconnect`, the `clientId`.",
    ErrorCode.PERMISSION_DENIED: "The connection's principal may not do this.",
    ErrorCode.ALREADY_EXISTS: "What was to be made is already there.",
    ErrorCode.CONFLICT: "Something else changed in the meantime.",
}


ALL_ERRORS = (
    "The tree of `session_server.schemas.errors`: each error has a stable code for programs and"
    " says whether the same request may succeed later. Then what each protocol makes of it: the"
    " code of a JSON-RPC error of AHP, the status of an HTTP problem, the code of a JSON-RPC error"
    " of MCP, and the exit code of the command line. Where nothing is written, the error does not"
    " get there; one that gets somewhere all the same is reported as a bare internal error and"
    " logged whole."
)


def pages() -> dict[str, str]:
    """The text of every generated page, by its file name."""
    return {
        "cli.md": cli_page(),
        "errors.md": errors_page(),
        "limits.md": limits_page(),
        "refusals.md": refusals_page(),
        "settings.md": settings_page(),
    }


def wire_documents() -> dict[str, str]:
    return {
        "ahp.schema.json": json_text(json_schema()),
        "asyncapi.json": json_text(asyncapi()),
    }


def json_text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def refusals_page() -> str:
    rows = ((f"`{code}`", MEANINGS[code]) for code in RefusalCode)
    opening = (
        "Why an action was refused. The code is stable; the message that comes with it is for"
        " people and may change."
    )
    return page("Refusals", opening, ("Code", "Meaning"), rows)


def limits_page() -> str:
    numbers = {name: value for name, value in vars(limits).items() if name.isupper()}
    rows = ((f"`{name}`", f"{value:,}", LIMIT_MEANINGS[name]) for name, value in numbers.items())
    opening = "The numbers that bound what may be sent, asked and kept."
    return page("Limits", opening, ("Name", "Number", "Meaning"), rows)


def settings_page() -> str:
    rows = (
        (
            f"`{name}`",
            f"`{flag_of(name)}`",
            f"`{ENVIRONMENT_PREFIX}{name.upper()}`",
            default_of(field.default),
            str(field.description),
        )
        for name, field in Settings.model_fields.items()
    )
    opening = (
        "The settings of `session-server serve`. A flag takes precedence over the environment,"
        f" that over the TOML file (`--config`, or `{CONFIG_FILE}` in the working folder), and"
        " that over the default. The file has the names of the first column. A list is written with"
        " commas in the environment, as an array in the file, and by repeating its flag. Secrets"
        " are better kept out of flags, which other users of the machine can see."
    )
    heads = ("Setting", "Flag", "Environment", "Default", "Meaning")
    return page("Settings", opening, heads, rows)


def default_of(value: Any) -> str:
    if value is None or value == ():
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def errors_page() -> str:
    rows = (
        (f"`{code}`", f"`{code.name}`", ERROR_MEANINGS[code], data_of(code)) for code in ErrorCode
    )
    opening = (
        "The codes of failed AHP requests. `data` names the shape that the error may carry; it is"
        " in `ahp.schema.json`, which `make docs` writes to `build/reference/`."
    )
    codes = page("Errors", opening, ("Code", "Name", "Meaning", "`data`"), rows)
    return f"{codes}\n## All errors\n\n{ALL_ERRORS}\n\n{table(HEADS, error_rows())}"


def data_of(code: ErrorCode) -> str:
    shape = ERROR_DATA.get(code)
    return "" if shape is None else f"`{shape.__name__}`"


def page(title: str, opening: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return f"# {title}\n\n<!-- Written by docs/build.py. -->\n\n{opening}\n\n{table(heads, rows)}"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def stale(folder: Path) -> list[str]:
    """The names of the pages that are missing from the folder or differ there."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def write(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str], folder: Path = REFERENCE, built: Path = BUILT) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    if not parser.parse_args(arguments).check:
        write(folder, pages())
        write(built, wire_documents())
        return 0
    found = stale(folder)
    for name in found:
        print(f"stale: docs/reference/{name}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
