"""What the official conformance suite says of the gateway, and of the side that makes calls."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.requests_2026 import host
from tests.mcp import conformance, zoo

REVISIONS = ("2026-07-28", "2025-11-25")
ATTEMPTS = 5
"""The suite listens to streams for less than a second, which a busy machine may exceed."""

NOT_RESUMABLE = {"server-sse-polling"}
"""The gateway keeps no events: a client that lost its connection makes the same request again."""

CLIENT_IS_ASKED = {
    "tools-call-elicitation",
    "tools-call-sampling",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    *(
        f"input-required-result-{name}"
        for name in (
            "basic-elicitation",
            "basic-sampling",
            "basic-list-roots",
            "request-state",
            "multiple-input-requests",
            "multi-round",
            "missing-input-response",
            "non-tool-request",
            "result-type",
            "tampered-state",
            "capability-check",
            "validate-input",
        )
    ),
}
"""With `answers: session` people in the session are asked instead."""

DIFFERENT = {"client": NOT_RESUMABLE, "session": NOT_RESUMABLE | CLIENT_IS_ASKED}
"""By who is asked; docs/gateway.md says the same."""

REPORT = "report.json"
MODES = {
    "client": {"answers": "client"},
    "session": {"answers": "session", "answerWithin": 0.05, "maxRounds": 1},
}
CLIENT_SCENARIOS = {
    "sep-2322-client-request-state": (
        "sep-2322-client-request-state-echoed",
        "sep-2322-client-jsonrpc-id-different",
        "sep-2322-client-no-state-omitted",
        "sep-2322-client-parallel-isolation",
        "sep-2322-default-result-type-complete",
    ),
    "elicitation-sep1034-client-defaults": (
        "client-elicitation-sep1034-string-default",
        "client-elicitation-sep1034-integer-default",
        "client-elicitation-sep1034-number-default",
        "client-elicitation-sep1034-enum-default",
        "client-elicitation-sep1034-boolean-default",
    ),
}
HEADER_SCENARIOS = {
    "http-custom-headers": (
        "sep-2243-client-supports-custom-headers",
        "sep-2243-client-mirrors-designated-params",
        "sep-2243-client-encode-values",
        "sep-2243-client-base64-unsafe",
        "sep-2243-client-omit-null",
    ),
    "http-invalid-tool-headers": (
        "sep-2243-client-reject-invalid-tool",
        "sep-2243-x-mcp-header-not-empty",
        "sep-2243-x-mcp-header-primitive-only",
        "sep-2243-x-mcp-header-unique",
        "sep-2243-x-mcp-header-charset",
    ),
}
OTHER_CLIENT_SCENARIOS = (
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
)
"""All others are about authorization, which is not spoken, or about extensions."""

DEFAULTS = '{"name":"John Doe","age":30,"score":95.5,"status":"active","verified":true}'
SAID = {
    "sep-2322-client-request-state": [
        "echo-state-ok",
        "unrelated-ok",
        "no-state-ok",
        "no-result-type-test-ok",
    ],
    "elicitation-sep1034-client-defaults": [
        "Elicitation completed: " + DEFAULTS,
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """What the suite expects of a server, over HTTP."""
    with zoo.http_server("conformance") as web:
        yield web.url


@pytest.fixture(scope="module")
def direct(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, conformance.Passed]:
    """What the server passes without the gateway, by revision: everything."""
    found: dict[str, conformance.Passed] = {}
    for revision in REVISIONS:
        found[revision] = conformance.passed(tmp_path_factory.mktemp("direct"), server, revision)
        failed = [name for name, checks in found[revision].items() if not checks]
        assert (len(found[revision]) > 30, failed) == (True, [])
    return found


@pytest.fixture(scope="module")
def gateway(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server over HTTP and as a process, by who is asked."""
    entries = {
        f"{transport}-{mode}": {**entry, **more}
        for transport, entry in (("web", {"url": server}), ("pipe", zoo.stdio_entry("conformance")))
        for mode, more in MODES.items()
    }
    with host(tmp_path_factory.mktemp("host"), entries) as running:
        yield f"{running.url}/mcp"


@pytest.mark.proves("mcp.conformance.server")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", ["web", "pipe"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_scenarios_that_pass_directly_pass_through_the_gateway(
    mode: str,
    transport: str,
    revision: str,
    direct: dict[str, conformance.Passed],
    gateway: str,
    tmp_path: Path,
) -> None:
    url = f"{gateway}/{transport}-{mode}"
    expected = direct[revision]
    passed = conformance.passed(tmp_path, url, revision)
    for scenario in expected.keys() - DIFFERENT[mode]:
        for attempt in range(ATTEMPTS):
            if expected[scenario] <= passed[scenario]:
                break
            folder = tmp_path / f"{scenario}-{attempt}"
            folder.mkdir()
            passed |= conformance.passed(folder, url, revision, scenario)
    different = {name for name, checks in expected.items() if not checks <= passed[name]}
    assert different == DIFFERENT[mode] & expected.keys()


@pytest.mark.proves("mcp.conformance.client")
@pytest.mark.parametrize("scenario", CLIENT_SCENARIOS)
def test_the_side_that_makes_calls_conforms(scenario: str, tmp_path: Path) -> None:
    results = conforming(scenario, CLIENT_SCENARIOS[scenario], tmp_path)
    assert [view["state"] for view in results] == ["finished"] * len(SAID[scenario])
    assert [view["result"]["content"][0]["text"] for view in results] == SAID[scenario]


def test_arguments_are_sent_as_headers_from_the_first_request_on(tmp_path: Path) -> None:
    scenario = "http-custom-headers"
    results = conforming(scenario, HEADER_SCENARIOS[scenario], tmp_path)
    assert [view["state"] for view in results] == ["finished"] * 2


def test_tools_whose_headers_are_not_valid_are_not_called(tmp_path: Path) -> None:
    scenario = "http-invalid-tool-headers"
    first, *others = conforming(scenario, HEADER_SCENARIOS[scenario], tmp_path)
    assert first["state"] == "finished"
    assert {"is not valid" in view["error"]["message"] for view in others} == {True}


@pytest.mark.proves("mcp.conformance.client")
@pytest.mark.parametrize("scenario", OTHER_CLIENT_SCENARIOS)
def test_the_calling_side_passes_every_check(scenario: str, tmp_path: Path) -> None:
    run = client_run(scenario, tmp_path)
    assert run.code == 0, run.output
    assert re.search(r"Passed: [1-9]\d*/\d+, 0 failed, 0 warnings", run.output), run.output


def conforming(scenario: str, checks: tuple[str, ...], folder: Path) -> list[dict[str, Any]]:
    """What the calls of a client scenario came to, once all its checks have passed."""
    run = client_run(scenario, folder)
    verdicts = {name: verdict for name, verdict in run.checks.items() if verdict != "INFO"}
    assert (run.code, verdicts) == (0, dict.fromkeys(checks, "SUCCESS")), run.output
    results: list[dict[str, Any]] = json.loads((folder / REPORT).read_text())
    return results


def client_run(scenario: str, folder: Path) -> conformance.Run:
    client = zoo.HERE / "clients" / "calling.py"
    return conformance.run(
        folder,
        *("client", "--command", f"{sys.executable} {client} {folder / REPORT}"),
        *("--scenario", scenario, "--timeout", "300000"),
    )
