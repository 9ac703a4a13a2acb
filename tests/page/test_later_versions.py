"""A person in the page, which speaks AHP 0.3.0, and one in a client of 1.0 answer one request."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from websockets.sync.client import ClientConnection, connect

from session_server.reducers.ahp1.client_chat_reducer import reduce_client_chat
from session_server.reducers.ahp1.uris import chat_uri
from tests.page.browser import People
from tests.page.locators import arrive, field, question
from tests.page.stage import DEADLINE, Stage, text, whole
from tests.servers import ServerProcess

pytestmark = pytest.mark.proves("ahp.ahp1.together")

SESSION = "ahp-session:/together"
CHAT = chat_uri(SESSION)
ROOM = "ahp-presence:/together"


class Editor:
    """A client of 1.0 with a mirror of the chat, and who is present."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._seq = 0
        self.chat: dict[str, Any] = {}
        self.present: list[dict[str, Any]] = []

    def joins(self, name: str) -> None:
        shake: dict[str, Any] = {"protocolVersions": ["1.0.0"], "clientId": "editor"}
        channels = [SESSION, CHAT, ROOM]
        self._send(
            "initialize", id=1, channel="ahp-root://", **shake, initialSubscriptions=channels
        )
        answer = self.until(lambda frame: frame.get("id") == 1)["result"]
        assert answer["protocolVersion"] == "1.0.0"
        (self.chat,) = (s["state"] for s in answer["snapshots"] if s["resource"] == CHAT)
        self._send("presence/update", channel=ROOM, name=name)

    def writes(self, request: str, question_id: str, words: str) -> None:
        answer = {"state": "draft", "value": {"kind": "text", "value": words}}
        self.acts("inputAnswerChanged", requestId=request, questionId=question_id, answer=answer)

    def acts(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._seq += 1
        seq, action = self._seq, {"type": f"chat/{kind}", **fields}
        self._send("dispatchAction", channel=CHAT, clientSeq=seq, action=action)
        params: dict[str, Any] = self.until(
            lambda f: f.get("params", {}).get("origin", {}).get("clientSeq") == seq
        )["params"]
        return params

    def _send(self, method: str, id: int | None = None, **params: Any) -> None:  # noqa: A002
        more = {} if id is None else {"id": id}
        frame = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self._socket.send(json.dumps(frame))

    def until(self, fits: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The frame that fits, or none if it is so already."""
        frame: dict[str, Any] = {}
        while not fits(frame):
            frame = json.loads(self._socket.recv(timeout=DEADLINE))
            params = frame.get("params", {})
            if frame.get("method") == "presence/changed":
                self.present = params["present"]
            elif params.get("channel") == CHAT and "rejectionReason" not in params:
                self.chat = reduce_client_chat(self.chat, params["action"])
        return frame

    @property
    def request(self) -> dict[str, Any]:
        """What was asked, with its answers so far."""
        turns = [*self.chat["turns"], *filter(None, [self.chat.get("activeTurn")])]
        parts = [part for turn in turns for part in turn["responseParts"]]
        (asked,) = (part for part in parts if part["kind"] == "inputRequest")
        found: dict[str, Any] = asked
        return found

    def draft(self, question_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.request["request"].get("answers", {}).get(question_id, {})
        return found


@pytest.fixture
def editor(host: ServerProcess) -> Iterator[Editor]:
    with connect(host.ahp, max_size=None, open_timeout=DEADLINE) as socket:
        yield Editor(socket)


def test_both_see_drafts_presence_and_who_wrote_what(
    person: People, stage: Stage, editor: Editor
) -> None:
    stage.form("together", text("name", required=True), whole("nights"))
    (ana,) = arrive([person("Ana")], "together")
    editor.joins("Eda")
    expect(ana.locator(".person")).to_have_count(2)
    editor.until(lambda _: {one["by"].get("name") for one in editor.present} == {"Ana", "Eda"})

    field(ana, "name").fill("Norway")
    editor.until(lambda _: editor.draft("name").get("value", {}).get("value") == "Norway")
    assert editor.draft("name")["_meta"]["by"]["name"] == "Ana"
    editor.until(lambda _: any(one.get("editing") for one in editor.present))

    editor.writes("r", "nights", "3")
    expect(field(ana, "nights")).to_have_value("3")
    expect(question(ana, "nights")).to_contain_text("Draft by Eda")

    question(ana, "name").get_by_role("button", name="Mark done").click()
    editor.until(lambda _: editor.draft("name").get("state") == "submitted")
    answers = {"nights": {"state": "submitted", "value": {"kind": "text", "value": "4"}}}
    done = editor.acts("inputCompleted", requestId="r", response="accept", answers=answers)
    assert "rejectionReason" not in done
    assert done["_meta"]["by"]["name"] == "Eda"
    expect(ana.locator(".outcome-text")).to_contain_text("Eda answered “Some questions”")
    expect(ana.locator(".outcome")).to_contain_text("Norway")
    expect(ana.locator(".outcome")).to_contain_text("4")
    kept = editor.request
    assert kept["response"] == "accept"
    values = {name: a["value"]["value"] for name, a in kept["request"]["answers"].items()}
    assert values == {"name": "Norway", "nights": 4}
    assert kept["request"]["answers"]["name"]["_meta"]["by"]["name"] == "Ana"
