"""A server written by hand, on stdin and stdout, that answers as no SDK would let it.

Each tool is one oddity. `ids` tells which JSON-RPC ids its calls came with. With `--legacy` it is
of the 2025 era. If `LOG_WHEN` names a file, it logs when that file is there, whoever calls it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

Answer = dict[str, Any]

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {
        "tools": {},
        "logging": {},
        "experimental": {"example.com/hologram": {"depth": 3}},
        "extensions": {"example.com/scent": {"notes": ["pine"]}},
    },
    "ttlMs": 0,
    "cacheScope": "public",
}
REPORTS = [(number * 12.5, 100, f"step {number}") for number in range(1, 9)]
FUTURE = {
    "content": [
        {"type": "hologram", "depth": 3},
        {"type": "text", "text": "plain", "scent": "pine"},
        {"type": "text"},
    ],
    "isError": True,
    "scent": {"notes": ["pine", None]},
    "_meta": {"example.com/scent": 1},
}
seen_ids: list[Any] = []
set_levels: list[str] = []


def text(words: str) -> Answer:
    return {"result": {"resultType": "complete", "content": [{"type": "text", "text": words}]}}


def failed(code: int, message: str, data: Any = None) -> Answer:
    return {"error": {"code": code, "message": message, "data": data}}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def ids(params: dict[str, Any]) -> Answer:
    """Three rounds, and then all the ids."""
    if len(seen_ids) < 3:
        return {"result": {"resultType": "input_required", "requestState": str(len(seen_ids))}}
    return text(json.dumps(seen_ids))


def die(params: dict[str, Any]) -> Answer:
    os._exit(3)


def repeating(params: dict[str, Any], secret: str) -> Answer:
    """Says a secret in several encodings: in a question and then a result, or in an error."""
    if params.get("arguments", {}).get("how") == "fail":
        return failed(-32602, f"no {secret}", {"seen": json.dumps({"key": secret})})
    state = f"canary-state of {secret}"
    if "inputResponses" not in params:
        form = {"mode": "form", "message": f"Use {secret}?", "requestedSchema": NO_QUESTIONS}
        asked = {"k": {"method": "elicitation/create", "params": form}}
        required = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        return {"result": required}
    if params["requestState"] != state:
        return failed(-32602, "This is not my state")
    return text(f"{secret} {json.dumps(secret)[1:-1]} {quote(secret)}")


NO_QUESTIONS = {"type": "object", "properties": {}}

TOOLS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "future": lambda _: {"result": {"resultType": "complete", **FUTURE}},
    "capabilities": lambda params: text(
        json.dumps(params["_meta"].get("io.modelcontextprotocol/clientCapabilities"))
    ),
    "ids": ids,
    "progress": lambda _: text("done"),
    "log": lambda _: text("logged"),
    "flood": lambda _: text("logged"),
    "die": die,
    "repeat": lambda params: repeating(params, os.environ.get("API_TOKEN", "")),
    "incapable": lambda _: failed(
        -32021, "Not enough", {"requiredCapabilities": {"sampling": {}, "roots": {}}}
    ),
    "refusing": lambda _: failed(-32602, "Not like this", {"reason": "mood"}),
    "strange": lambda _: {"result": {"resultType": "hologram", "content": []}},
    "untyped": lambda _: {"result": {"content": [{"type": "text", "text": "plain"}]}},
    "huge": lambda _: text("x" * 9_000_000),
    "huge-ts": lambda _: text("x" * 9_000_000),
    "garbled": lambda _: text("plain"),
    "deep": lambda _: {
        "result": {"resultType": "complete", "content": [], "structuredContent": {"d": deep(80)}}
    },
    "empty": lambda _: {"result": {"resultType": "input_required"}},
    "listed": lambda _: {
        "result": {"resultType": "input_required", "inputRequests": [{"id": "a"}]}
    },
    "wide": lambda _: {
        "result": {"resultType": "complete", "content": [], "structuredContent": {"n": 2**70}}
    },
}


def answer(method: str, params: dict[str, Any], request_id: Any) -> Answer:
    is_legacy = "--legacy" in sys.argv
    if method == "server/discover" and not is_legacy:
        return {"result": DISCOVERED}
    if method == "initialize" and is_legacy:
        about = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "odd", "version": "1"}}
        return {"result": {**about, "capabilities": DISCOVERED["capabilities"]}}
    if method == "tools/list" and "--listless" in sys.argv:
        sys.stdin.read()  # until nobody asks any more
    if method == "tools/list":
        shape = {"inputSchema": {"type": "object"}, "scent": {"notes": ["pine"]}}
        tools = [{"name": name, **shape} for name in TOOLS]
        listing = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        return {"result": {**listing, "tools": tools}}
    if method == "logging/setLevel" and is_legacy:
        set_levels.append(params["level"])
        return {"result": {}}
    if method != "tools/call":
        return failed(-32601, "Method not found")
    if params["name"] == "ids":
        seen_ids.append(request_id)
    return TOOLS[params["name"]](params)


def report(token: Any) -> None:
    for progress, total, words in REPORTS:
        told = {"progressToken": token, "progress": progress, "total": total, "message": words}
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
        sys.stdout.write(json.dumps(notice) + "\n")
        sys.stdout.flush()


def log(meta: dict[str, Any], tool: str) -> None:
    """At three levels, with what it was told of levels; or a flood."""
    asked = [*set_levels, meta.get("io.modelcontextprotocol/logLevel")]
    data = {"levels": asked, "token": os.environ.get("API_TOKEN")}
    told = [{"level": level, "data": data} for level in ("debug", "info", "error")]
    if tool == "flood":
        told = [{"level": "info", "logger": "odd", "data": number} for number in range(5_000)]
    for params in told:
        notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        sys.stdout.write(json.dumps(notice) + "\n")
    sys.stdout.flush()


def log_by_itself() -> None:
    file = os.environ.get("LOG_WHEN")
    while file is not None and not Path(file).exists():
        time.sleep(0.02)
    if file is not None:
        log({}, "log")


def main() -> None:
    threading.Thread(target=log_by_itself, daemon=True).start()
    if "--broken" in sys.argv:
        sys.exit(f"The database is locked: {os.environ['API_TOKEN']}")
    if "--noisy" in sys.argv:
        for number in range(90):
            sys.stderr.write(f"INFO request {number} was served\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            reply = answer(message["method"], message.get("params") or {}, message["id"])
            whole = {"jsonrpc": "2.0", "id": message["id"], **reply}
            tool = (message.get("params") or {}).get("name")
            if tool == "progress":
                report(message["params"]["_meta"]["progressToken"])
            if tool in ("log", "flood"):
                log(message["params"].get("_meta") or {}, tool)
            if tool == "garbled":
                sys.stdout.buffer.write(b"\xff\xfe not UTF-8\n")
            if tool == "huge-ts":  # its id comes last, as in TypeScript's SDK
                whole = {**reply, "jsonrpc": "2.0", "id": message["id"]}
            sys.stdout.write(json.dumps(whole) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
