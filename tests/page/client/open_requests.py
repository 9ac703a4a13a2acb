"""Sessions with open questions, made over HTTP."""

import json
import urllib.request
from typing import Any

from tests.effort import PATIENCE

QUESTIONS: list[dict[str, Any]] = [
    {"kind": "text", "id": "name", "message": "What is it called?", "required": True},
    {"kind": "text", "id": "note", "message": "Anything to add?", "max": 40},
    {"kind": "integer", "id": "depth", "message": "How deep?", "min": 1, "max": 9},
]


def post(url: str, body: Any) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def new_session(url: str, title: str = "Beds") -> str:
    uri: str = post(f"{url}/v1/sessions", {"title": title})["resource"]
    return uri


def ask(url: str, session: str, message: str = "About the bed") -> str:
    """Asks the usual questions; gives the request's id."""
    name = session.rpartition("/")[2]
    body = {"message": message, "questions": QUESTIONS}
    asked = post(f"{url}/v1/sessions/{name}/requests", body)
    identity: str = asked["id"]
    return identity


def get(url: str, session: str) -> Any:
    """The state of the session, as HTTP shows it; every number is a float, as the page's are."""
    name = session.rpartition("/")[2]
    with urllib.request.urlopen(f"{url}/v1/sessions/{name}", timeout=PATIENCE) as answer:
        return json.load(answer, parse_int=float)
