"""Servers that cannot be used, and why: the same words in the session, over HTTP and in a shell."""

import asyncio
import contextlib
import datetime as dt
import json
import ssl
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from session_server.mcp_client.failures import HttpResponseInfo, did_not_run
from session_server.schemas.ahp.customizations import McpAuthRequired, McpServer
from session_server.schemas.record import SessionRecord
from tests.ahp.client import ROOT, SocketClient
from tests.calls.running_host import http, listed, running_host
from tests.cli.shells import Shell, shell_of
from tests.gateway.requests_2026 import rpc
from tests.mcp import zoo
from tests.servers import ServerProcess, serving, sqlite_store, web_server

pytestmark = pytest.mark.slow

ODD = zoo.HERE / "servers" / "odd.py"
KEY = "a key that outlives any process of this server"
SECRET = "secret-of-the-header-4711"
SECONDS = 60
NO_HEADERS = 'set `headers` for it in mcp.json, such as {"Authorization": "Bearer ${TOKEN}"}'


class Reply(NamedTuple):
    status: int
    kind: str = "text/plain"
    body: str = "x"
    headers: tuple[tuple[str, str], ...] = ()


CHALLENGE = ("WWW-Authenticate", 'Bearer error="insufficient_scope", scope="zoo:feed zoo:see"')
REPLIES = {
    "/bare": Reply(401),
    "/challenge": Reply(401, headers=(CHALLENGE,)),
    "/forbidden": Reply(403, headers=(CHALLENGE,)),
    "/html": Reply(200, "text/html; charset=utf-8", "<h1>Welcome</h1>"),
    "/text": Reply(200),
    "/json": Reply(200, "application/json", '{"hello": "world"}'),
    "/broken": Reply(200, "application/json", "{"),
    "/error-page": Reply(500, "text/html", "<h1>Oh</h1>"),
    "/moved": Reply(308, headers=(("Location", "https://elsewhere.example/mcp"),)),
}


class Answering(BaseHTTPRequestHandler):
    """Something that is no MCP server."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        reply = REPLIES.get(self.path.partition("?")[0], Reply(404))
        self.send_response(reply.status)
        for name, value in (("Content-Type", reply.kind), *reply.headers):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the status was enough for it
            self.wfile.write(reply.body.encode())

    do_GET = do_DELETE = do_POST  # noqa: N815


def self_signed(folder: Path) -> ssl.SSLContext:
    """A certificate that nobody has a reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    file = folder / "certificate.pem"
    encoding = serialization.Encoding.PEM
    file.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.sign(key, hashes.SHA256()).public_bytes(encoding)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


REASONS = {
    "bare": f"it wants authorization (HTTP 401): {NO_HEADERS}, and start the host again",
    "challenge": f"it wants authorization (HTTP 401): {NO_HEADERS}, and start the host again",
    "refused": "it does not accept the credentials in its `headers` in mcp.json (HTTP 401)",
    "forbidden": "it forbids this (HTTP 403): the credentials in its `headers` in mcp.json need",
    "nothing": "there is nothing at its `url` (HTTP 404); check it in mcp.json",
    "html": "what answers there does not speak MCP; check its `url` in mcp.json",
    "text": "what answers there does not speak MCP; check its `url` in mcp.json",
    "json": "what answers there does not speak MCP; check its `url` in mcp.json",
    "broken": "what answers there does not speak MCP; check its `url` in mcp.json",
    "error-page": "it answered with an error (HTTP 500)",
    "moved": "it has moved to another address; put that into its `url` in mcp.json",
    "closed": "nothing answers at its address; check its `url` in mcp.json, and whether it runs",
    "unknown": "the name in its `url` is unknown; check it in mcp.json",
    "untrusted": "its certificate is not trusted (self-signed certificate)",
    "plain": "no secure connection could be made; check whether its `url` begins with http://",
    "missing": "its `command` in mcp.json was not found: install it, or give its whole path",
    "unrunnable": "its `command` in mcp.json may not be run",
    "lost-folder": "its `cwd` in mcp.json is not a folder that can be used",
    "short-lived": "it ended at once; if it wrote why, that is in the host's log",
    "silent": "it did not answer within 0.5 seconds",
}
AUTHORIZATION = {"bare", "challenge", "refused", "forbidden"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("troubles")
    credentials = {"Authorization": f"Bearer {SECRET}"}
    python = sys.executable
    with web_server(Answering) as port, web_server(Answering, self_signed(folder)) as secure_port:
        with web_server(Answering) as closed_port:
            pass
        at = f"http://127.0.0.1:{port}"
        servers: dict[str, dict[str, Any]] = {
            **{path[1:]: {"url": f"{at}{path}"} for path in REPLIES},
            "refused": {"url": f"{at}/challenge?key={SECRET}", "headers": credentials},
            "nothing": {"url": f"{at}/nothing"},
            "closed": {"url": f"http://127.0.0.1:{closed_port}/mcp"},
            "unknown": {"url": "http://nowhere.invalid/mcp"},
            "untrusted": {"url": f"https://127.0.0.1:{secure_port}/mcp"},
            "plain": {"url": f"https://127.0.0.1:{port}/mcp"},
            "missing": {"command": "no-such-program-anywhere", "args": [SECRET]},
            "unrunnable": {"command": str(folder)},
            "lost-folder": {"command": python, "cwd": "nowhere"},
            "short-lived": {"command": python, "args": ["-c", ""]},
            "silent": {
                "command": python,
                "args": ["-c", "import sys; sys.stdin.read()"],
                "startTimeout": 0.5,
            },
        }
        config = zoo.mcp_json(folder, servers)
        with serving("memory:", "--mcp-config", str(config)) as server:
            yield server
            assert SECRET not in "".join(server.output)


@pytest.fixture(scope="module")
def shell(server: ServerProcess) -> Shell:
    return shell_of(server)


async def watched(ahp: str, session: str) -> dict[str, Any]:
    """The session as a subscriber sees it, at a moment when its server is not just being tried."""
    watcher = await SocketClient.open(ahp)
    await watcher.initialize("watcher", ROOT)
    for _ in range(200):
        snapshot = (await watcher.call("subscribe", session))["snapshot"]
        state: dict[str, Any] = snapshot["state"]
        if state["customizations"][0]["state"]["kind"] != "starting":
            break
    await watcher.close()
    return state


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_why_a_server_cannot_be_used_is_in_http_and_in_the_session(
    name: str, server: ServerProcess
) -> None:
    uri, wanted = f"ahp-session:/{name}", {"server": name, "tool": "echo"}
    with httpx2.Client(base_url=server.url, timeout=SECONDS) as http:
        http.post("/v1/sessions", json={"resource": uri})
        view = http.post(f"/v1/sessions/{name}/calls?wait={SECONDS}", json=wanted)
    message = view.json()["error"]["message"]
    assert message.startswith(f"{name} cannot be used: {REASONS[name]}"), message
    session = asyncio.run(watched(server.ahp, uri))
    state = session["customizations"][0]["state"]
    if name in AUTHORIZATION:
        assert state["kind"] == "authRequired", state
        assert state["description"].startswith(REASONS[name])
        assert state["resource"]["resource"] == f"mcp:{name}"
        assert state.get("requiredScopes") == (None if name == "bare" else ["zoo:feed", "zoo:see"])
        assert state["reason"] == ("insufficientScope" if name == "forbidden" else "required")
    else:
        assert state["kind"] == "error", state
        assert state["error"]["message"].startswith(REASONS[name])
    assert REASONS[name] in str(session["turns"])
    assert SECRET not in view.text + json.dumps(session)


@pytest.mark.parametrize("name", ["bare", "unknown", "missing"])
def test_the_reason_why_a_server_cannot_be_used_is_in_the_shell(name: str, shell: Shell) -> None:
    done = shell("call", name, "echo", "--arg", "text=x")
    assert done.code == 1
    said = " ".join(done.err.split())
    assert f"{name}/echo failed: {name} cannot be used: {REASONS[name]}" in said
    assert "Traceback" not in said


async def test_a_server_is_used_again_after_its_credential_was_corrected(tmp_path: Path) -> None:
    def state(record: SessionRecord) -> Any:
        (entry,) = record.public.customizations or ()
        assert isinstance(entry, McpServer)
        return entry.state if isinstance(entry.state, McpAuthRequired) else None

    store = sqlite_store(tmp_path)
    with zoo.http_server("modern", "--token", SECRET) as server:
        old = http(server.url, headers={"authorization": "Bearer old"})
        async with running_host(old, store) as at:
            message = await at.error(await at.call("echo", text="x"))
            assert message.startswith(f"zoo cannot be used: {REASONS['refused']}")
            assert (await at.until(state)).required_scopes == ("zoo:feed", "zoo:see")
        corrected = http(server.url, headers={"Authorization": f"Bearer {SECRET}"})
        async with running_host(corrected, store) as at:
            assert await at.text(await at.call("echo", text="x")) == "x"
            await at.until(lambda record: listed(record)["zoo"] == "ready" or None)
    assert SECRET.encode() not in (tmp_path / "sessions.db").read_bytes()


async def test_answers_wait_until_an_expired_credential_is_replaced(tmp_path: Path) -> None:
    """A leg that the server turns away did not run; after a restart it goes out again."""
    store, effects = sqlite_store(tmp_path), tmp_path / "effects"
    arguments = ("--key", KEY, "--effects", str(effects))
    with zoo.http_server("modern", *arguments, "--token", "old") as old:
        expired = http(old.url, headers={"Authorization": "Bearer old"})
        async with running_host(expired, store) as at:
            call_id = await at.call("deploy", service="web")
            await at.asked("Where should web go?")
            old.kill()
            with zoo.http_server("modern", *arguments, "--token", "new", port=old.port):
                await at.answer("Where should web go?", environment="staging")
                reason = f"zoo cannot be used now, and is tried again: {REASONS['refused']}"
                await at.until(lambda _: any(reason in note for note in at.notes()) or None)
                await at.until(lambda record: listed(record)["zoo"] == "authRequired" or None)
    with zoo.http_server("modern", *arguments, "--token", "new", port=old.port) as new:
        replaced = http(new.url, headers={"Authorization": "Bearer new"})
        async with running_host(replaced, store) as at:
            assert await at.text(call_id) == "web is in staging"
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.parametrize(
    ("status", "is_certain"),
    [(401, True), (403, True), (429, True), (500, False), (502, False), (503, False)],
)
def test_only_who_turns_a_request_away_has_surely_not_run_it(status: int, is_certain: bool) -> None:
    """A proxy says 503 also of a server that broke off in the middle of its work."""
    assert did_not_run(HttpResponseInfo(status=status)) is is_certain


def test_what_a_healthy_server_logs_does_not_fill_the_hosts_output(tmp_path: Path) -> None:
    noisy = {"command": sys.executable, "args": [str(ODD), "--noisy"]}
    config = zoo.mcp_json(tmp_path, {"noisy": noisy})
    for level, is_shown in (("info", False), ("debug", True)):
        with serving("memory:", "--mcp-config", str(config), "--log-level", level) as server:
            listed = rpc(f"{server.url}/mcp/noisy", "tools/list", {})
            assert listed["result"]["tools"]
            server.stop()
            told = "".join(server.output)
        assert ("INFO request 89 was served" in told) is is_shown


def test_the_last_lines_of_a_server_that_ended_are_in_the_log_once(tmp_path: Path) -> None:
    broken = {
        "command": sys.executable,
        "args": [str(ODD), "--broken"],
        "env": {"API_TOKEN": SECRET},
    }
    config = zoo.mcp_json(tmp_path, {"broken": broken})
    with serving("memory:", "--mcp-config", str(config)) as server:
        for _ in range(2):
            assert (
                "ended at once"
                in rpc(f"{server.url}/mcp/broken", "tools/list", {})["error"]["message"]
            )
        server.stop()
        told = "".join(server.output)
    assert told.count("the MCP server broken cannot be used: it ended at once") == 1
    assert "The database is locked: •••" in told
    assert SECRET not in told


def test_one_bad_entry_stops_neither_the_host_nor_other_servers(tmp_path: Path) -> None:
    config = zoo.mcp_json(
        tmp_path,
        {
            "old": {"type": "sse", "url": "https://example.com/sse"},
            "my server": {"command": sys.executable, "args": [str(ODD)], "privateArgument": []},
        },
    )
    with serving("memory:", "--mcp-config", str(config)) as server:
        assert rpc(f"{server.url}/mcp/my-server", "tools/list", {})["result"]["tools"]
        refused = rpc(f"{server.url}/mcp/old", "tools/list", {})["error"]["message"]
        assert "The MCP server 'old' cannot be used: its transport is SSE" in refused
        server.stop()
        told = "".join(server.output)
    assert "the server 'old' cannot be used: its transport is SSE" in told
    assert "did you mean `privateArguments`?" in told
    assert "the server 'my server' is called 'my-server' here" in told
