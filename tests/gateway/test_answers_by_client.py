"""`answers: client`: questions go to the client, with a state that only the gateway can read."""

import contextlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway.requests_2026 import CAN_ASK, People, call, finished, host, text, wait_for
from tests.mcp import zoo
from tests.servers import ServerProcess, sqlite_store

FORMS_ONLY: dict[str, Any] = {"elicitation": {"form": {}}}
HOLD = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, effects: Path) -> Iterator[ServerProcess]:
    entries = {
        kind: zoo.stdio_entry(kind, "--effects", str(effects / kind), answers="client")
        for kind in ("modern", "typescript", "legacy", "dual", "fastmcp")
    }
    entries["modern"]["protocol"] = "2026-07-28"  # its tools return their questions
    folder = tmp_path_factory.mktemp("host")
    with host(folder, entries, "--mcp-hold-seconds", str(HOLD)) as running:
        yield running


class Asking:
    """A client with these capabilities, at the gateway of one server."""

    def __init__(self, server: ServerProcess, kind: str) -> None:
        self.url = f"{server.url}/mcp/{kind}"

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = CAN_ASK,
        **retry: Any,
    ) -> Any:
        """As clients do: told to try again, it tries again."""
        return finished(self.url, tool, arguments, capabilities=capabilities, retry=retry)

    def leg(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = CAN_ASK,
        **retry: Any,
    ) -> Any:
        return call(self.url, tool, arguments, capabilities=capabilities, retry=retry)


@pytest.fixture
def modern(server: ServerProcess) -> Asking:
    return Asking(server, "modern")


@pytest.fixture
def typescript(server: ServerProcess) -> Asking:
    return Asking(server, "typescript")


@pytest.fixture
def legacy(server: ServerProcess) -> Asking:
    return Asking(server, "legacy")


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.mark.proves("mcp.gateway.missing-key")
def test_a_key_left_out_is_asked_again_and_one_never_asked_for_is_passed_over(
    modern: Asking, legacy: Asking
) -> None:
    first = modern.call("pair")["result"]
    assert set(first["inputRequests"]) == {"name", "age"}
    given = {"name": accept(name="Ada"), "never asked": accept(x=1)}
    again = modern.call("pair", inputResponses=given, requestState=first["requestState"])["result"]
    assert "age" in again["inputRequests"]

    rest = {"age": accept(age=36)}
    done = modern.call("pair", inputResponses=rest, requestState=again["requestState"])
    assert text(done) == "Ada is 36"

    retry: dict[str, Any] = {}
    for _ in range(2):  # asked at the same time by a server of 2025, one after the other here
        held = legacy.call("both", **retry)["result"]
        ((key, question),) = held["inputRequests"].items()
        again = legacy.call("both", requestState=held["requestState"])["result"]
        assert again["inputRequests"] == {key: question}
        (field,) = question["params"]["requestedSchema"]["properties"]
        values = {"city": "Oslo", "environment": "staging"}
        given = {key: accept(**{field: values[field]}), "never asked": accept(x=1)}
        retry = {"inputResponses": given, "requestState": again["requestState"]}
    assert text(legacy.call("both", **retry)) == "Oslo staging"


def test_the_state_of_the_server_cannot_be_read_or_changed(typescript: Asking) -> None:
    asked = typescript.call("trip")["result"]
    state = asked["requestState"]
    assert len(asked["inputRequests"]) == 3
    assert state.count(".") == 1  # the server's own is signed: three parts, the middle in the clear
    answers = {
        "city": accept(city="Oslo"),
        "nights": accept(nights=2),
        "meal": accept(meal="none"),
    }
    forged = typescript.call("trip", inputResponses=answers, requestState=f"{state}x")["error"]
    assert forged["data"] == {"reason": "invalid_request_state"}
    done = typescript.call("trip", inputResponses=answers, requestState=state)
    assert text(done) == "Oslo, 2 nights, none"


def test_a_server_that_gives_no_state_gets_none(modern: Asking) -> None:
    state = modern.call("stateless")["result"]["requestState"]
    answers = {"colour": accept(colour="red")}
    done = modern.call("stateless", inputResponses=answers, requestState=state)
    assert text(done) == "red, state None"


def test_answers_that_come_with_the_first_request_are_taken(modern: Asking) -> None:
    answers = {"colour": accept(colour="green"), "never asked": accept(x=1)}
    assert text(modern.call("stateless", inputResponses=answers)) == "green, state None"


@pytest.mark.parametrize("kind", ["modern", "legacy"])
def test_exactly_the_capabilities_of_the_client_are_declared_to_the_server(
    kind: str, server: ServerProcess
) -> None:
    asking = Asking(server, kind)
    sets: list[dict[str, Any]] = [{}, FORMS_ONLY, CAN_ASK, CAN_ASK | {"sampling": {}}]
    seen = [json.loads(text(asking.call("mirror", capabilities=one))) for one in sets]
    assert [mirror["capabilities"] for mirror in seen] == sets
    # In 2026 each request declares them, so that one process serves all; in 2025 a connection does.
    assert len({mirror["pid"] for mirror in seen}) == (1 if kind == "modern" else len(sets))
    again = json.loads(text(asking.call("mirror", capabilities=FORMS_ONLY)))
    assert again["pid"] == seen[1]["pid"]


def test_a_client_that_cannot_answer_gets_the_error_of_the_server(
    modern: Asking, legacy: Asking
) -> None:
    told = modern.call("weather", capabilities={})["error"]
    assert told["code"] == -32021
    failed = legacy.call("weather", capabilities={})["result"]
    assert failed["isError"]


def test_a_question_of_2025_is_held_open_until_the_client_comes_back(
    legacy: Asking, effects: Path
) -> None:
    first = legacy.call("deploy", {"service": "web"})["result"]
    ((key, question),) = first["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Where should web go?"
    second = legacy.call(
        "deploy",
        {"service": "web"},
        inputResponses={key: accept(environment="production")},
        requestState=first["requestState"],
    )["result"]
    ((key, question),) = second["inputRequests"].items()
    assert question["params"]["message"] == "This is production. Really?"
    last = legacy.call(
        "deploy",
        {"service": "web"},
        inputResponses={key: accept(sure=True)},
        requestState=second["requestState"],
    )
    assert text(last) == "web is in production"
    assert len(zoo.effects(effects / "legacy", "deploy")) == 1


MODEL = {"role": "assistant", "content": {"type": "text", "text": "Oui"}, "model": "none"}
ROOTS = {"roots": [{"uri": "file:///here"}]}


def test_models_and_roots_are_asked_across_the_eras(server: ServerProcess, legacy: Asking) -> None:
    for tool, can, answer, said in (
        ("sample", {"sampling": {}}, MODEL, "Oui"),
        ("folders", {"roots": {}}, ROOTS, "file:///here"),
    ):
        asked = legacy.call(tool, capabilities=can)["result"]
        (key,) = asked["inputRequests"]
        state = asked["requestState"]
        done = legacy.call(tool, {}, can, inputResponses={key: answer}, requestState=state)
        assert text(done) == said
    spec = {
        "url": f"{server.url}/mcp/modern",
        "sample": "Oui",
        "roots": ["file:///here"],
        "calls": [["tools/call", "sample", {}], ["tools/call", "folders", {}]],
    }
    sampled, listed = zoo.run_client("legacy", spec)["results"]
    assert (zoo.text_of(sampled), zoo.text_of(listed)) == ("sampled", "file:///here")


def test_what_takes_longer_than_a_leg_is_handed_back_and_picked_up(modern: Asking) -> None:
    slow = {"steps": 3, "pause": 0.6}
    first = modern.leg("count", slow)["result"]
    assert first["resultType"] == "input_required"
    assert "inputRequests" not in first
    assert text(modern.call("count", slow, requestState=first["requestState"])) == "counted to 3"


def test_a_url_that_2025_wants_opened_first_is_a_round_in_2026(
    legacy: Asking, effects: Path
) -> None:
    first = legacy.call("gated")["result"]
    (question,) = first["inputRequests"].values()
    assert question["params"] == {
        "mode": "url",
        "message": "Sign in first.",
        "url": "https://example.com/first",
    }
    (key,) = first["inputRequests"]
    answers = {key: {"action": "accept"}}
    done = legacy.call("gated", inputResponses=answers, requestState=first["requestState"])
    assert text(done) == "past the gate"
    assert len(zoo.effects(effects / "legacy", "gated")) == 1


@contextlib.contextmanager
def restarted(folder: Path, effects: Path, *arguments: str) -> Generator[Callable[[], Asking]]:
    """A host with a 2025-era server; called, it is killed, and its successor stands."""
    entry = zoo.stdio_entry("legacy", "--effects", str(effects), answers="client")
    running: list[ServerProcess] = []
    with contextlib.ExitStack() as stack:

        def again() -> Asking:
            for before in running:
                before.kill()
            kept = sqlite_store(folder)  # and with it, the key of the states
            running.append(
                stack.enter_context(host(folder, {"legacy": entry}, *arguments, store=kept))
            )
            return Asking(running[-1], "legacy")

        yield again


def only(answer: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """The one question of a round: its key, its words, and the state to bring back."""
    result = answer["result"]
    ((key, question),) = result["inputRequests"].items()
    return key, question["params"]["message"], {"requestState": result["requestState"]}


def test_answers_of_a_client_finish_a_call_that_a_restart_interrupted(tmp_path: Path) -> None:
    """It may have run, so the client is asked; but nothing that it has answered already."""
    effects = tmp_path / "effects"
    web = {"service": "web"}
    with restarted(tmp_path, effects) as again:
        asking = again()
        where, _, state = only(asking.call("deploy", web))
        production = {where: accept(environment="production")}
        sure, reason, state = only(asking.call("deploy", web, inputResponses=production, **state))
        assert reason == "This is production. Really?"
        asking = again()
        answers = {sure: accept(sure=True)}
        key, reason, state = only(asking.call("deploy", web, inputResponses=answers, **state))
        assert (key, reason) == (
            "runAgain",
            "legacy/deploy: It may already have run. Run it again?",
        )
        asked, _, later = only(asking.call("deploy", web, **state))  # a key left out
        assert asked == key
        yes = {key: accept(runAgain=True)}
        done = asking.call("deploy", web, inputResponses=yes, **later)
        assert text(done) == "web is in production"
        late = asking.call("deploy", web, inputResponses={key: {"action": "decline"}}, **state)
        assert late["result"] == done["result"]  # it is decided
    assert len(zoo.effects(effects, "deploy")) == 1


def test_a_client_that_declines_to_run_it_again_gets_an_error_that_says_so(tmp_path: Path) -> None:
    with restarted(tmp_path, tmp_path / "effects") as again:
        _, _, state = only(again().call("deploy", {"service": "web"}))
        asking = again()
        key, _, state = only(asking.call("deploy", {"service": "web"}, **state))
        no = {key: accept(runAgain=False)}
        told = asking.call("deploy", {"service": "web"}, inputResponses=no, **state)["result"]
    assert told["isError"]
    assert "was not run again" in text({"result": told})
    assert zoo.effects(tmp_path / "effects", "deploy") == []


def test_the_same_request_finds_its_call_after_a_restart(tmp_path: Path) -> None:
    web = {"service": "web"}
    with restarted(tmp_path, tmp_path / "effects") as again:
        only(again().call("deploy", web))
        asking = again()
        key, reason, state = only(asking.call("deploy", web))  # without its state
        assert "Run it again?" in reason
        yes = {key: accept(runAgain=True)}
        _, reason, _ = only(asking.call("deploy", web, inputResponses=yes, **state))
        assert reason == "Where should web go?"


def test_what_is_harmless_to_run_twice_is_taken_up_without_a_word(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    with restarted(tmp_path, effects) as again:
        key, _, state = only(again().call("forecast"))
        done = again().call("forecast", inputResponses={key: accept(city="Oslo")}, **state)
    assert text(done) == "Rain in Oslo"
    assert len(zoo.effects(effects, "forecast")) == 1


def test_for_a_client_that_cannot_be_asked_people_say_whether_it_runs_again(
    tmp_path: Path,
) -> None:
    can = {"roots": {}}
    hold = ("--mcp-hold-seconds", "1")
    with restarted(tmp_path, tmp_path / "effects", *hold) as again:
        first = again().call("folders", {}, can)["result"]
        (key,) = first["inputRequests"]
        state = {"requestState": first["requestState"]}
        asking = again()
        told = asking.leg("folders", {}, can, inputResponses={key: ROOTS}, **state)["result"]
        assert "inputRequests" not in told
        with People(asking.url.removesuffix("/mcp/legacy")) as people:
            (session,) = people.sessions()
            (question,) = people.asked(session)
            assert "Run it again?" in question["request"]["message"]
            people.complete(session, question)
        state = {"requestState": told["requestState"]}
        assert text(asking.call("folders", {}, can, **state)) == "file:///here"


def test_a_result_whose_client_disconnected_is_kept_for_the_same_request(
    server: ServerProcess, effects: Path
) -> None:
    url = f"{server.url}/mcp/legacy"
    slow = {"steps": 1, "pause": 0.4}
    before = len(zoo.effects(effects / "legacy", "count"))
    with pytest.raises(httpx2.ReadTimeout):
        call(url, "count", slow, capabilities=CAN_ASK, timeout=0.2)
    assert text(Asking(server, "legacy").call("count", slow)) == "counted to 1"
    assert len(zoo.effects(effects / "legacy", "count")) == before + 1


@pytest.mark.parametrize("kind", ["dual", "fastmcp"])
def test_a_server_of_both_revisions_is_called_in_that_of_the_client(
    kind: zoo.Kind, server: ServerProcess, effects: Path
) -> None:
    """As it would be without the gateway; and what a tool of the other style needs is learned."""
    spec = {
        "url": f"{server.url}/mcp/{kind}",
        "match": {"city": "Oslo"},
        "calls": [["tools/call", tool, {}] for tool in ("book", "pick", "pick", "book")],
    }
    book, pick, again, once_more = zoo.run_client("legacy", spec)["results"]
    assert zoo.text_of(book) == zoo.text_of(once_more) == "booked Oslo"
    if kind == "dual":  # its SDK does not report that it has only asked, and nobody said "again"
        assert "was not run again" in zoo.text_of(pick)
    else:
        assert zoo.text_of(pick) == "picked Oslo"
    assert zoo.text_of(again) == "picked Oslo"
    assert len(zoo.effects(effects / kind, "begun")) == 2
    assert len(zoo.effects(effects / kind, "booked")) == 2


def test_a_call_whose_client_never_comes_back_is_abandoned_also_after_a_restart(
    tmp_path: Path,
) -> None:
    entry = zoo.stdio_entry("modern", answers="client", answerWithin=3)
    store = sqlite_store(tmp_path)
    with host(tmp_path, {"modern": entry}, store=store) as running:
        (question,) = Asking(running, "modern").call("stateless")["result"]["inputRequests"]
        assert question == "colour"
    with host(tmp_path, {"modern": entry}, store=store) as running, People(running.url) as people:
        (session,) = people.sessions()
        ended = wait_for(lambda: next((c for c in people.calls(session) if "endedAt" in c), None))
        assert (ended["state"], ended["reason"]) == (
            "abandoned",
            "test-client did not answer within 3 seconds. Call again if it is needed.",
        )


def test_a_client_that_comes_back_too_late_gets_the_reason_why_its_call_ended(
    tmp_path: Path,
) -> None:
    entry = zoo.stdio_entry("legacy", answers="client", answerWithin=1)
    with host(tmp_path, {"legacy": entry}) as running, People(running.url) as people:
        asking = Asking(running, "legacy")
        key, _, state = only(asking.call("deploy", {"service": "web"}))
        (session,) = people.sessions()
        wait_for(lambda: "endedAt" in people.calls(session)[0])
        answers = {key: accept(environment="staging")}
        late = asking.call("deploy", {"service": "web"}, inputResponses=answers, **state)
    assert late["result"]["isError"]
    assert "abandoned: test-client did not answer within 1 seconds" in text(late)
