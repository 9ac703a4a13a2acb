"""Every client with every server through the gateway, whoever answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.gateway.requests_2026 import People, Room, host, path_of
from tests.mcp import zoo
from tests.servers import ServerProcess

KINDS = ("modern", "typescript", "legacy")
VALUES: dict[str, Any] = {"environment": "production", "sure": True, "reason": "it is time"}
CALLS: list[list[Any]] = [
    ["tools/list"],
    ["resources/list"],
    ["resources/read", "zoo://sign"],
    ["tools/call", "echo", {"text": "through the gateway"}],
    ["tools/call", "deploy", {"service": "web"}],
]


def entries(effects: Path, answers: str) -> dict[str, dict[str, Any]]:
    found = {
        f"{kind}-{answers}": zoo.stdio_entry(
            kind, "--effects", str(effects / f"{kind}-{answers}"), answers=answers
        )
        for kind in get_args(zoo.Kind)
        if kind in KINDS
    }
    found[f"modern-{answers}"]["protocol"] = "2026-07-28"  # its tools return their questions
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, effects: Path) -> Iterator[ServerProcess]:
    modes = ("session", "client", "both")
    servers = {name: entry for mode in modes for name, entry in entries(effects, mode).items()}
    with host(tmp_path_factory.mktemp("host"), servers) as running:
        yield running


def check(report: dict[str, Any], client: str, kind: str) -> None:
    assert report["version"] == ("2025-11-25" if client == "legacy" else "2026-07-28")
    assert report["server"] == f"zoo-{kind}"
    assert report["instructions"]
    tools, resources, sign, echo, deployed = report["results"]
    assert {"echo", "deploy", "visit"} <= {tool["name"] for tool in tools["tools"]}
    assert [resource["uri"] for resource in resources["resources"]] == ["zoo://sign"]
    assert sign["contents"][0]["text"] == "Do not feed."
    assert zoo.text_of(echo) == "through the gateway"
    assert zoo.text_of(deployed) == "web is in production"


@pytest.mark.parametrize("is_shown", [False, True])
@pytest.mark.parametrize("client", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_questions_are_passed_on_to_a_client_that_answers_them(
    kind: zoo.Kind,
    client: zoo.Kind,
    is_shown: bool,
    server: ServerProcess,
    people: People,
    effects: Path,
) -> None:
    """With `client`, the session shows the call, and nothing of what was asked."""
    mode = "both" if is_shown else "client"
    room = Room(f"{server.url}/mcp/{kind}-{mode}", people, f"{kind}-{client}-{mode}")
    before = len(zoo.effects(effects / f"{kind}-{mode}", "deploy"))
    calls = [*CALLS, ["tools/call", "visit", {}]]
    report = zoo.run_client(client, room.spec(*calls, match=VALUES))
    visited = report["results"].pop()
    check(report, client, kind)
    where, really, url = report["asked"]
    assert where["message"] == "Where should web go?"
    assert really["message"] == "This is production. Really?"
    assert (url["mode"], url["url"]) == ("url", "https://example.com/in?a=b")
    assert ("elicitationId" in url) == (client == "legacy")
    assert zoo.text_of(visited).startswith("accept")
    assert len(zoo.effects(effects / f"{kind}-{mode}", "deploy")) == before + 1
    assert [call["state"] for call in people.calls(room.session)] == ["finished"] * 4
    assert people.questions(room.session) == []
    told = json.dumps(people.http.get(path_of(room.session)).raise_for_status().json())
    assert ("Where should web go?" in told) == is_shown


@pytest.mark.parametrize(("kind", "client"), [("legacy", "modern"), ("modern", "legacy")])
def test_a_refusal_and_a_cancellation_are_different_in_both_eras(
    kind: zoo.Kind, client: zoo.Kind, server: ServerProcess
) -> None:
    spec = {
        "url": f"{server.url}/mcp/{kind}-client",
        "answers": [{"action": "decline"}, {"action": "cancel"}],
        "calls": [["tools/call", "visit", {}], ["tools/call", "visit", {}]],
    }
    report = zoo.run_client(client, spec)
    assert [zoo.text_of(result).split()[0] for result in report["results"]] == ["decline", "cancel"]


def test_prompts_and_resources_that_ask_are_answered_too(
    server: ServerProcess, people: People
) -> None:
    room = Room(f"{server.url}/mcp/modern-session", people, "prompts")
    calls = [["prompts/list"], ["prompts/get", "brief"], ["resources/read", "zoo://cage/lion"]]
    with zoo.client("modern", room.spec(*calls)) as started:
        room.answer({"subject": "gateways"})
        room.answer({"key": "brass"})
        listed, brief, cage = started.report()["results"]
    assert {prompt["name"] for prompt in listed["prompts"]} == {"greeting", "brief"}
    assert brief["messages"][0]["content"]["text"] == "Write about gateways."
    assert cage["contents"][0]["text"] == "lion behind brass"
