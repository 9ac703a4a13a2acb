"""A 2025-era server on stdin and stdout that goes on with calls that were cancelled.

`ask` puts a question on the connection; `nag` too, whenever there is a new file in the folder that
it is called with, although its call was given up long ago. Run as a file.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "nag", "pid")]
FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
lock = threading.Lock()
waiting: dict[str, tuple[Any, str]] = {}


def send(**message: Any) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def says(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def elicit(call_id: Any, message: str) -> None:
    number = f"q{len(waiting)}"
    waiting[number] = (call_id, message)
    params = {"message": message, "requestedSchema": FORM}
    send(id=number, method="elicitation/create", params=params)


def nag(call_id: Any, folder: Path) -> None:
    seen = 0
    while True:
        files = len(list(folder.iterdir()))
        if files > seen:
            seen = files
            elicit(call_id, "A question of a call that was given up")
        time.sleep(0.02)


def call(request_id: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "pid":
            send(id=request_id, result=says(str(os.getpid())))
        case "ask":
            elicit(request_id, "Which city?")
        case _:
            folder = Path(arguments["folder"])
            threading.Thread(target=nag, args=(request_id, folder), daemon=True).start()


for line in sys.stdin:
    message = json.loads(line)
    match message:
        case {"id": number, "method": "initialize"}:
            known = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            send(id=number, result={**known, "serverInfo": {"name": "stubborn", "version": "1"}})
        case {"id": number, "method": "tools/list"}:
            send(id=number, result={"tools": TOOLS})
        case {"id": number, "method": "tools/call", "params": params}:
            call(number, params["name"], params.get("arguments", {}))
        case {"id": number, "method": _}:
            send(id=number, error={"code": -32601, "message": "Method not found"})
        case {"id": number, "result": result}:
            call_id, _ = waiting[number]
            send(id=call_id, result=says(f"Sunny in {result['content']['city']}"))
        case _:
            pass
