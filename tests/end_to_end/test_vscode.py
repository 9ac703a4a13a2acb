"""VS Code's own client code, as npm has it, against a real host."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.schemas.ahp.session import Status
from tests.ahp.actions import answer_changed, input_completed, text_question
from tests.ahp.client import SocketClient
from tests.npm_modules import ROOT, node, npm_script
from tests.servers import AT_ANY_PACE, ServerProcess, serving, sqlite_store
from tests.waiting import until

SCRIPT = Path(__file__).with_name("vscode_client.mjs")
SESSION = "ahp-session:/trip"
SHOWN = "people:/trip"


class VsCode:
    """Told what to do, one thing after the other; see `vscode_client.mjs`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, command: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, "with": arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']}")
        return answer["result"]


@contextmanager
def vscode(server: ServerProcess) -> Iterator[VsCode]:
    """As with `"chat.remoteAgentHosts": [{"address": "127.0.0.1:8737", …}]` in its settings."""
    npm_script("@codingame/monaco-vscode-api", "package.json")
    address = server.url.removeprefix("http://")
    command = [node(), str(SCRIPT), address]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        client = VsCode(process)
        try:
            assert client("connect") == "0.9.0"
            yield client
        finally:
            process.kill()


FORM = (
    text_question("name"),
    {"kind": "integer", "id": "nights", "message": "How many?", "min": 1, "required": True},
)


async def asked(server: ServerProcess) -> tuple[SocketClient, str]:
    """A person in the page, and the id of what a program has asked over HTTP."""
    page = await SocketClient.joined(server.ahp, "page")
    assert await page.call("createSession", SESSION, provider="people") is None
    await page.call("subscribe", SESSION)
    wanted = {"message": "Where to?", "questions": FORM}
    asked = httpx2.post(f"{server.url}/v1/sessions/trip/requests", json=wanted)
    return page, asked.raise_for_status().json()["id"]


def text_answers(**texts: str) -> dict[str, Any]:
    """As VS Code answers, whatever the question."""
    return {
        name: {"state": "submitted", "value": {"kind": "text", "value": text}}
        for name, text in texts.items()
    }


def requests(code: VsCode, chat: str) -> list[dict[str, Any]]:
    state = code("state", chat)
    turns = [*state["turns"], *([state["activeTurn"]] if "activeTurn" in state else [])]
    return [part for t in turns for part in t["responseParts"] if part["kind"] == "inputRequest"]


@pytest.mark.proves("ahp.ahp1.vscode")
async def test_a_question_is_seen_and_answered_in_vs_code() -> None:
    with serving("memory:") as server, vscode(server) as code:
        page, request_id = await asked(server)
        (listed,) = code("sessions")
        assert listed["session"] == SHOWN
        assert listed["status"] & Status.INPUT_NEEDED == Status.INPUT_NEEDED
        chat = code("watch", SHOWN)
        assert [needed["chat"] for needed in code("state", SHOWN)["inputNeeded"]] == [chat]
        (part,) = requests(code, chat)
        assert [question["id"] for question in part["request"]["questions"]] == ["name", "nights"]
        await page.act(answer_changed("Ad", request_id, "name"), SESSION)
        await until(lambda: "answers" in requests(code, chat)[0]["request"])
        wrong = {**input_completed(request_id), "type": "chat/inputCompleted"}
        code("dispatch", chat, {**wrong, "answers": text_answers(name="Ada", nights="many")})
        await until(lambda: "response" not in requests(code, chat)[0])
        code("dispatch", chat, {**wrong, "answers": text_answers(name="Ada", nights="3")})
        done = await page.wait_for_action("session/inputCompleted")
        assert done["action"]["answers"]["nights"]["value"] == {"kind": "number", "value": 3}
        await until(lambda: code("confirmed", chat) == code("state", chat))
        (part,) = requests(code, chat)
        assert part["response"] == "accept"
        assert part["request"]["answers"]["nights"]["value"]["value"] == 3
        assert "inputNeeded" not in code("state", SHOWN)
        assert code("warnings") == []
        await page.close()


@pytest.mark.proves("ahp.ahp1.vscode")
async def test_vs_code_resumes_after_lost_connections_and_a_restart(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, *AT_ANY_PACE)
    try:
        with vscode(server) as code:
            page, request_id = await asked(server)
            chat = code("watch", SHOWN)
            for number in range(3):
                code("cut")
                await page.act(answer_changed(f"n{number}", request_id, "name"), SESSION)
                await until(lambda: code("connection") == "connected")
            await until(lambda: same_as_shown(server, code, chat))
            server.kill()
            server = ServerProcess(store, *AT_ANY_PACE, port=server.port)
            await until(lambda: code("connection") == "connected")
            page = await SocketClient.joined(server.ahp, "page", SESSION)
            await page.act(answer_changed("later", request_id, "name"), SESSION)
            await until(lambda: "later" in json.dumps(requests(code, chat)))
            await page.act(input_completed(request_id, "cancel"), SESSION)
            await until(lambda: requests(code, chat)[0].get("response") == "cancel")
            await page.close()
    finally:
        server.kill()


@pytest.mark.proves("ahp.ahp1.vscode")
async def test_vs_code_begins_anew_with_a_host_that_has_forgotten_it() -> None:
    server = ServerProcess("memory:")
    try:
        with vscode(server) as code:
            await asked(server)
            code("watch", SHOWN)
            server.kill()
            server = ServerProcess("memory:", port=server.port)
            await until(lambda: code("connection") == "connected")
            assert code("sessions") == []
            _, request_id = await asked(server)
            chat = code("watch", SHOWN)
            assert requests(code, chat)[0]["request"]["id"] == request_id
    finally:
        server.kill()


def same_as_shown(server: ServerProcess, code: VsCode, chat: str) -> bool:
    """Whether another VS Code, which comes now, is shown the same."""
    with vscode(server) as other:
        assert other("watch", SHOWN) == chat
        return all(code("state", uri) == other("state", uri) for uri in (SHOWN, chat))


def has_title(code: VsCode, session: str, title: str) -> bool:
    return bool(code("confirmed", session)["title"] == title)


@pytest.mark.proves("ahp.ahp1.vscode")
async def test_vs_code_starts_a_turn_of_an_agent_and_finds_sessions_by_any_name() -> None:
    with serving("memory:", *AT_ANY_PACE) as server, vscode(server) as code:
        page = await SocketClient.joined(server.ahp, "page")
        for name in ("ahp-session:/12:00 (a)", "other:/a/b", "ahp-session:/ü%20"):
            assert await page.call("createSession", name, provider="people") is None
        made = code("create", "demo")
        listed = {entry["session"] for entry in code("sessions")}
        assert made in listed
        assert len(listed) == 4
        for session in listed:
            chat = code("watch", session)
            assert code("state", session)["defaultChat"] == chat
            code("dispatch", session, {"type": "session/titleChanged", "title": f"My {session}"})
            await until(partial(has_title, code, session, f"My {session}"))
        chat = code("state", made)["defaultChat"]
        message = {"text": "Go", "origin": {"kind": "user"}, "model": {"id": "default"}}
        start = {"turnId": "t", "startedAt": "2026-11-17T05:00:00.000Z", "message": message}
        code("dispatch", chat, {"type": "chat/turnStarted", **start})
        await until(lambda: requests(code, chat))
        with pytest.raises(RuntimeError, match="open"):
            code("dispose", made)
        code("dispatch", chat, {"type": "chat/turnCancelled", "turnId": "t", "duration": 1})
        await until(lambda: code("confirmed", chat)["turns"])
        code("dispose", made)
        assert made not in {entry["session"] for entry in code("sessions")}
        await page.close()


@pytest.mark.proves("ahp.ahp1.vscode")
def test_the_settings_in_the_docs_are_read_by_vs_code() -> None:
    page = (ROOT / "docs" / "vscode.md").read_text()
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    with serving("memory:") as server, vscode(server) as code:
        assert [*shown] == code("settings")
        for entry in shown["chat.remoteAgentHosts"]:
            read = code("entry", {**entry, "connectionToken": "secret"})
            assert read["connectionToken"] == "secret"
            assert read["connection"] == {"type": "websocket", "address": entry["address"]}
        typed = code("typed", "http://127.0.0.1:8737/?tkn=secret")
        assert (typed["address"], typed["connectionToken"]) == ("127.0.0.1:8737", "secret")
        assert code("typed", "https://host.example")["address"] == "wss://host.example"
