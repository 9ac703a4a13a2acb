"""A client under test for the conformance suite: our calling side, as a host with one MCP server.

The suite gives the server's URL as the last argument. People answer over HTTP; what the calls came
to is written to the file that the first argument names, for the suite cannot tell.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import httpx2

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gateway.requests_2026 import People, host, rpc, wait_for

SESSION = "ahp-session:/conformance"


def start(people: People, tool: str, arguments: dict[str, object] | None = None) -> str:
    path = f"/v1/sessions/{quote(SESSION, safe='')}/calls"
    body = {"server": "suite", "tool": tool, "arguments": arguments or {}}
    made = people.http.post(path, json=body).raise_for_status()
    return str(made.json()["id"])


def ended(people: People, call_id: str) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        path = f"/v1/calls/{quote(call_id, safe='')}?wait=1"
        view: dict[str, object] = people.http.get(path).raise_for_status().json()
        return view if "endedAt" in view else None

    found: dict[str, object] = wait_for(look)
    return found


def request_state(people: People) -> list[dict[str, object]]:
    """Another call between the rounds of one, so that what belongs to one can go astray."""
    echo = start(people, "test_mrtr_echo_state")
    people.asked(SESSION)
    unrelated = ended(people, start(people, "test_mrtr_unrelated"))
    people.answer(SESSION, {"confirmed": True})
    first = ended(people, echo)
    no_state = start(people, "test_mrtr_no_state")
    people.answer(SESSION, {"confirmed": True})
    plain = ended(people, start(people, "test_mrtr_no_result_type"))
    return [first, unrelated, ended(people, no_state), plain]


def defaults(people: People) -> list[dict[str, object]]:
    """Accepted as it is: the defaults are the answers."""
    made = start(people, "test_client_elicitation_defaults")
    people.answer(SESSION)
    return [ended(people, made)]


def custom_headers(people: People) -> list[dict[str, object]]:
    """What the suite says is to be called."""
    wanted = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
    return [ended(people, start(people, one["name"], one["arguments"])) for one in wanted]


def invalid_headers(people: People) -> list[dict[str, object]]:
    """All that the suite's server lists, also what must not be called."""
    return [ended(people, start(people, str(tool["name"]))) for tool in listed(people, "tools")]


def listed(people: People, kind: str) -> list[dict[str, object]]:
    url = str(people.http.base_url.join("/mcp/suite"))
    found: list[dict[str, object]] = rpc(url, f"{kind}/list", {})["result"][kind]
    return found


def connected(people: People) -> list[dict[str, object]]:
    """Connecting is all that the scenario needs; tools are listed then, if there are any."""
    assert "result" in rpc(str(people.http.base_url.join("/mcp/suite")), "server/discover", {})
    return []


def sum_of_numbers(people: People) -> list[dict[str, object]]:
    return [ended(people, start(people, "add_numbers", {"a": 2, "b": 3}))]


def reconnection(people: People) -> list[dict[str, object]]:
    return [ended(people, start(people, "test_reconnection"))]


def everything_once(people: People) -> list[dict[str, object]]:
    """Each tool, prompt and resource that the suite's server lists."""
    path = f"/v1/sessions/{quote(SESSION, safe='')}/calls"
    wanted: list[dict[str, object]] = []
    for kind, method, name in (
        ("tools", "tools/call", "name"),
        ("prompts", "prompts/get", "name"),
        ("resources", "resources/read", "uri"),
    ):
        wanted += [
            {"server": "suite", "method": method, "params": {name: one[name]}}
            for one in listed(people, kind)
        ]
    made = [people.http.post(path, json=body).raise_for_status().json() for body in wanted]
    return [ended(people, one["id"]) for one in made]


def echoed_schema(people: People) -> list[dict[str, object]]:
    """The schema of one tool, as it came through, is an argument of the other."""
    focal, echo = listed(people, "tools")
    arguments = {"schema": focal["inputSchema"]}
    return [ended(people, start(people, str(echo["name"]), arguments))]


SCENARIOS = {
    "initialize": connected,
    "tools_call": sum_of_numbers,
    "sse-retry": reconnection,
    "request-metadata": connected,
    "http-standard-headers": everything_once,
    "json-schema-ref-no-deref": connected,
    "json-schema-2020-12-preservation": echoed_schema,
    "http-custom-headers": custom_headers,
    "http-invalid-tool-headers": invalid_headers,
    "sep-2322-client-request-state": request_state,
    "elicitation-sep1034-client-defaults": defaults,
}


def main(report: Path, url: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        host(Path(folder), {"suite": {"url": url}}) as running,
        People(running.url) as people,
    ):
        people.http.post("/v1/sessions", json={"resource": SESSION}).raise_for_status()
        done = SCENARIOS[os.environ["MCP_CONFORMANCE_SCENARIO"]](people)
    report.write_text(json.dumps(done))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except httpx2.HTTPStatusError as error:
        raise SystemExit(error.response.text) from error
