"""Everything that goes wrong is one shape, with a stable code and words that help."""

import socket

import httpx2
import msgspec
import pytest

from session_server.app import create_app
from session_server.http.problems import COMMAND_STATUS, REFUSAL_STATUS
from session_server.schemas.errors import ErrorCode, RefusalCode
from session_server.schemas.http import Problem
from session_server.schemas.limits import CASSETTE_BYTES, FRAME_BYTES, JSON_DEPTH
from tests.effort import PATIENCE
from tests.http.sessions import Api
from tests.servers import ServerProcess


def problem(response: httpx2.Response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    told = msgspec.json.decode(response.content, type=Problem)
    assert told.status == response.status_code
    assert told.type == f"urn:session-server:problem:{told.code}"
    assert told.title
    assert told.detail.endswith((".", "!"))
    return told


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "noRoute"),
        ("GET", "/v1/nothing", 404, "noRoute"),
        ("GET", "/v1/sessions/", 404, "noRoute"),
        ("PATCH", "/v1/sessions", 405, "methodNotAllowed"),
        ("GET", "/v1/sessions/none", 404, "sessionNotFound"),
        ("GET", "/v1/sessions/none/requests?wait=x", 422, "invalidParameter"),
        ("GET", "/v1/sessions/none/requests?wait=nan", 422, "invalidParameter"),
        ("GET", "/v1/sessions/none/requests?state=x", 422, "invalidParameter"),
        ("GET", "/v1/sessions/none/events", 404, "sessionNotFound"),
        ("DELETE", "/v1/sessions/none/turns/active", 404, "sessionNotFound"),
    ],
)
def test_every_error_is_a_problem(api: Api, method: str, path: str, status: int, code: str) -> None:
    response = api.request(method, path)
    assert (response.status_code, problem(response).code) == (status, code)


def test_a_wrong_method_is_answered_with_the_allowed_ones(api: Api) -> None:
    assert api.put("/v1/sessions").headers["allow"] == "GET, POST"
    assert api.post("/v1/sessions/x/requests/y").headers["allow"] == "DELETE, GET"
    assert api.post("/healthz").headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("body", "status", "code", "path"),
    [
        (b"nonsense", 400, "malformed", None),
        (b'{"title": "\xff"}', 400, "malformed", None),
        (b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1), 400, "malformed", None),
        (b"[]", 422, "mismatch", "$"),
        (b'{"message": 7}', 422, "mismatch", "$.message"),
        (b'{"questions": [{"kind": "riddle"}]}', 422, "unknownKind", "$.questions[0].kind"),
        (b'{"message": "?", "expiresIn": 0}', 422, "mismatch", "$.expiresIn"),
        (b'{"message": "?", "expiresIn": 1e300}', 422, "mismatch", "$.expiresIn"),
    ],
)
def test_a_body_that_does_not_fit_says_where(
    api: Api, session: str, body: bytes, status: int, code: str, path: str | None
) -> None:
    headers = {"Content-Type": "application/json"}
    response = api.post(f"{session}/requests", content=body, headers=headers)
    told = problem(response)
    assert (response.status_code, told.code, told.path) == (status, code, path)


def test_only_json_is_taken(api: Api, session: str) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {} if kind is None else {"Content-Type": kind}
        response = api.post(f"{session}/requests", content=b'{"message":"?"}', headers=headers)
        assert response.status_code == 415
        assert "--json" in problem(response).detail
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    taken = api.post(f"{session}/requests", content=b'{"message":"?"}', headers=headers)
    assert taken.status_code == 201


def test_a_body_that_is_too_big_is_refused_whether_it_says_so_or_not(
    api: Api, session: str
) -> None:
    body = b'{"message":"' + b"x" * FRAME_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    said = api.post(f"{session}/requests", content=body, headers=headers)
    pieces = api.post(f"{session}/requests", content=iter([body]), headers=headers)
    for response in (said, pieces):
        assert response.status_code == 413
        assert str(FRAME_BYTES) in problem(response).detail


@pytest.mark.parametrize(
    ("path", "kind", "size"),
    [
        ("/v1/sessions", "application/json", FRAME_BYTES + 1),
        ("/v1/replay", "application/x-ndjson", CASSETTE_BYTES + 1),
    ],
)
def test_a_client_that_asks_before_it_sends_too_much_is_refused_at_once(
    server: ServerProcess, path: str, kind: str, size: int
) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        f"Expect: 100-continue\r\nContent-Length: {size}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as raw:
        raw.sendall(head.encode())
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_every_code_has_a_status() -> None:
    """Codes without one of their own are the caller's mistakes; those are listed here."""
    mistakes = {
        ErrorCode.PARSE_ERROR, ErrorCode.INVALID_REQUEST, ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.INVALID_PARAMS, ErrorCode.PROVIDER_NOT_FOUND,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }  # fmt: skip
    assert set(ErrorCode) == set(COMMAND_STATUS) | mistakes
    values = {
        RefusalCode.OTHER_CHANNEL, RefusalCode.LIMIT, RefusalCode.NO_VALUE, RefusalCode.WRONG_KIND,
        RefusalCode.NOT_AN_OPTION, RefusalCode.NO_FREEFORM, RefusalCode.DUPLICATE,
        RefusalCode.TOO_SHORT, RefusalCode.TOO_LONG, RefusalCode.TOO_SMALL, RefusalCode.TOO_LARGE,
        RefusalCode.TOO_FEW, RefusalCode.TOO_MANY, RefusalCode.NOT_AN_INTEGER,
        RefusalCode.BAD_FORMAT, RefusalCode.BAD_PATTERN, RefusalCode.REQUIRED,
        RefusalCode.BAD_FORM, RefusalCode.NOT_A_USER_MESSAGE, RefusalCode.NO_OPTION,
        RefusalCode.NOT_EDITABLE, RefusalCode.NOT_CONFIGURABLE,
    }  # fmt: skip
    assert set(RefusalCode) == set(REFUSAL_STATUS) | values


async def test_what_nobody_expected_is_a_bare_problem() -> None:
    """The application with a route of its own that fails; a server logs what it raises again."""

    async def fails() -> None:
        raise RuntimeError("the secret of the failure")

    app = create_app("memory:")
    app.add_api_route("/fails", fails)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.get("/fails")
    assert (response.status_code, problem(response).code) == (500, "internal")
    assert "secret" not in response.text
