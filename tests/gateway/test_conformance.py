"""What the official conformance suite says of the gateway, and of the side that makes calls."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.exchange import host
from tests.mcp import conformance, zoo

ATTEMPTS = 5
"""The suite listens to streams for less than a second, which a busy machine may exceed."""

WIRE = "wire-schema-valid"

SERVER_SCENARIOS = {
    "basic-elicitation": ("sep-2322-elicitation-incomplete", "sep-2322-elicitation-complete"),
    "basic-sampling": ("sep-2322-sampling-incomplete", "sep-2322-sampling-complete"),
    "basic-list-roots": ("sep-2322-list-roots-incomplete", "sep-2322-list-roots-complete"),
    "request-state": ("sep-2322-request-state-incomplete", "sep-2322-request-state-complete"),
    "multiple-input-requests": (
        "sep-2322-multiple-inputs-incomplete",
        "sep-2322-multiple-inputs-complete",
    ),
    "multi-round": (
        "sep-2322-multi-round-r1",
        "sep-2322-multi-round-r2",
        "sep-2322-multi-round-r3",
    ),
    "missing-input-response": ("sep-2322-missing-response-rerequests",),
    "non-tool-request": ("sep-2322-non-tool-incomplete", "sep-2322-non-tool-complete"),
    "result-type": ("sep-2322-result-type-included",),
    "unsupported-methods": ("sep-2322-not-on-unsupported-requests",),
    "tampered-state": ("sep-2322-reject-tampered-state",),
    "capability-check": ("sep-2322-respect-client-capabilities",),
    "ignore-extra-params": ("sep-2322-ignore-unexpected-params",),
    "validate-input": ("sep-2322-validate-input-responses", "sep-2322-error-on-protocol-error"),
}

SCENARIOS_2025 = (
    "tools-call-elicitation",
    "tools-call-sampling",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "completion-complete",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-with-logging",
    "logging-set-level",
    "server-sse-multiple-streams",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
)
"""Those that the server passes without the gateway."""

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
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The suite's kind of server, behind the gateway, whose clients answer for themselves."""
    entry = zoo.stdio_entry("conformance", answers="client")
    with host(tmp_path_factory.mktemp("host"), {"suite": entry}) as running:
        yield f"{running.url}/mcp/suite"


@pytest.mark.slow
@pytest.mark.proves("mcp.conformance.server")
@pytest.mark.parametrize("scenario", SERVER_SCENARIOS)
def test_a_server_behind_the_gateway_conforms(scenario: str, gateway: str, tmp_path: Path) -> None:
    run = conformance.run(
        tmp_path,
        *("server", "--url", gateway, "--scenario", f"input-required-result-{scenario}"),
        *("--spec-version", "2026-07-28"),
    )
    expected = dict.fromkeys((*SERVER_SCENARIOS[scenario], WIRE), "SUCCESS")
    assert (run.code, run.checks) == (0, expected), run.output


@pytest.fixture(scope="module")
def both_eras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway to the suite's kind of server, which speaks both eras."""
    with zoo.http_server("conformance") as web:
        entries = {
            "pipe": zoo.stdio_entry("conformance", answers="client"),
            "web": {"url": web.url, "answers": "client"},
        }
        with host(tmp_path_factory.mktemp("both-eras"), entries) as running:
            yield f"{running.url}/mcp"


@pytest.mark.slow
@pytest.mark.proves("mcp.conformance.server")
@pytest.mark.parametrize("server", ["pipe", "web"])
@pytest.mark.parametrize("scenario", SCENARIOS_2025)
def test_a_server_behind_the_gateway_conforms_to_2025_too(
    scenario: str, server: str, both_eras: str, tmp_path: Path
) -> None:
    """Tools that ask on the connection can: the server is spoken to in the era of the client."""
    run = conformance.run(
        tmp_path,
        *("server", "--url", f"{both_eras}/{server}", "--scenario", scenario),
        *("--spec-version", "2025-11-25"),
    )
    failed = {name: verdict for name, verdict in run.checks.items() if verdict == "FAILURE"}
    assert run.checks
    assert (run.code, failed) == (0, {}), run.output


@pytest.mark.slow
def test_headers_are_checked_as_http_reads_them(gateway: str, tmp_path: Path) -> None:
    run = conformance.run(
        tmp_path,
        *("server", "--url", gateway, "--scenario", "http-header-validation"),
        *("--spec-version", "2026-07-28"),
    )
    assert (run.code, set(run.checks.values())) == (0, {"SUCCESS"}), run.output


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway to a server whose lists change, on stdin and stdout and over HTTP."""
    with zoo.http_server("changing") as web:
        entries = {
            "pipe": zoo.changing_entry("modern"),
            "web": {"url": web.url},
            "web-client": {"url": web.url, "answers": "client"},
        }
        with host(tmp_path_factory.mktemp("changing"), entries) as running:
            yield f"{running.url}/mcp"


@pytest.mark.slow
@pytest.mark.parametrize("server", ["pipe", "web", "web-client"])
@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        ("server-stateless", "2026-07-28"),
        ("resources-subscribe", "2025-11-25"),
        ("resources-unsubscribe", "2025-11-25"),
    ],
)
def test_subscriptions_behind_the_gateway_conform(
    scenario: str, version: str, server: str, changing: str, tmp_path: Path
) -> None:
    for _ in range(ATTEMPTS):
        run = conformance.run(
            tmp_path,
            *("server", "--url", f"{changing}/{server}", "--scenario", scenario),
            *("--spec-version", version),
        )
        if run.code == 0:
            break
    failed = {name: verdict for name, verdict in run.checks.items() if verdict == "FAILURE"}
    assert run.checks
    assert (run.code, failed) == (0, {}), run.output


@pytest.mark.slow
@pytest.mark.proves("mcp.conformance.client")
@pytest.mark.parametrize("scenario", CLIENT_SCENARIOS)
def test_the_side_that_makes_calls_conforms(scenario: str, tmp_path: Path) -> None:
    results = conforming(scenario, CLIENT_SCENARIOS[scenario], tmp_path)
    assert [view["state"] for view in results] == ["finished"] * len(SAID[scenario])
    assert [view["result"]["content"][0]["text"] for view in results] == SAID[scenario]


@pytest.mark.slow
def test_arguments_are_sent_as_headers_from_the_first_request_on(tmp_path: Path) -> None:
    scenario = "http-custom-headers"
    results = conforming(scenario, HEADER_SCENARIOS[scenario], tmp_path)
    assert [view["state"] for view in results] == ["finished"] * 2


@pytest.mark.slow
def test_tools_whose_headers_are_not_valid_are_not_called(tmp_path: Path) -> None:
    scenario = "http-invalid-tool-headers"
    first, *others = conforming(scenario, HEADER_SCENARIOS[scenario], tmp_path)
    assert first["state"] == "finished"
    assert {"is not valid" in view["error"]["message"] for view in others} == {True}


def conforming(scenario: str, checks: tuple[str, ...], folder: Path) -> list[dict[str, Any]]:
    """What the calls of a client scenario came to, once all its checks have passed."""
    report = folder / "report.json"
    client = zoo.HERE / "clients" / "calling.py"
    run = conformance.run(
        folder,
        *("client", "--command", f"{sys.executable} {client} {report}", "--scenario", scenario),
        *("--timeout", "300000"),
    )
    told = {name: verdict for name, verdict in run.checks.items() if verdict != "INFO"}
    assert (run.code, told) == (0, dict.fromkeys(checks, "SUCCESS")), run.output
    results: list[dict[str, Any]] = json.loads(report.read_text())
    return results
