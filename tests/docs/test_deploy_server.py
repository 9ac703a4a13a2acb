"""The example server, as `serve --demo` shows it: a deployment that people finish."""

import tomllib
from pathlib import Path

import httpx2
import pytest

from tests.servers import serving, sqlite_store

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 60


def answer(http: httpx2.Client, message: str, **content: object) -> None:
    url = "/v1/sessions/deploy/requests"
    (item,) = http.get(f"{url}?wait={SECONDS}").json()["items"]
    assert message in item["request"]["message"]
    rid = item["id"].replace("/", "%2F")
    done = http.post(f"{url}/{rid}/complete", json={"content": content})
    assert done.status_code == 200, done.text


@pytest.mark.slow
def test_the_demo_has_a_blocked_deployment_that_people_finish(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with (
        serving(store, "--demo") as server,
        httpx2.Client(base_url=server.url, timeout=SECONDS) as http,
    ):
        while http.get("/v1/sessions/deploy").status_code == 404:
            pass
        answer(http, "Deploying web 1.4.2", environment="production")
        http.get(f"/v1/sessions/deploy/requests?wait={SECONDS}")
        server.kill()
    with (
        serving(store, "--demo") as server,
        httpx2.Client(base_url=server.url, timeout=SECONDS) as http,
    ):
        answer(http, "10 % of production's traffic", approved=True)
        (call,) = http.get("/v1/sessions/deploy/calls").json()["items"]
        ended = http.get(f"/v1/calls/{call['id']}?wait={SECONDS}").json()
        message = "web 1.4.2 is out in production (10 %); the team is notified."
        assert ended["result"]["content"][0]["text"] == message
        shown = http.get("/v1/sessions/deploy").text
        assert "not-a-real-token" not in shown
        assert "•••" in shown
        server.stop()
        assert any("/#/s/deploy  an MCP call that waits" in line for line in server.output)


def test_the_example_is_a_project_of_its_own() -> None:
    folder = ROOT / "examples" / "deploy_server"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"deploy-server": "deploy_server:main"}
    assert [name.partition(">")[0] for name in project["dependencies"]] == ["mcp"]
    assert "session_server" not in (folder / "deploy_server.py").read_text()
