"""The OpenAPI document says what the server does, and the page that shows it needs no one else."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from fastapi import FastAPI

from session_server.app import create_app
from session_server.http.api import ROUTERS
from tests.http.sessions import QUESTIONS, Api
from tests.servers import ServerProcess, serving

DOCUMENT = json.loads(json.dumps(create_app("memory:").openapi()))
OPERATIONS = {
    operation["operationId"]: operation
    for path in DOCUMENT["paths"].values()
    for operation in path.values()
}
PRIVATE = ("requestState", "privateArguments", "heldCompletion", "openedWith")


def references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(value)))


def test_every_route_is_described() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    assert len(OPERATIONS) == len(routes)
    for operation in OPERATIONS.values():
        assert operation["description"]
        assert {"401", "403", "422", "503"} <= set(operation["responses"])


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    prefix = "#/components/schemas/"
    wanted = references(DOCUMENT["paths"])
    schemas = DOCUMENT["components"]["schemas"]
    assert references(DOCUMENT) == {f"{prefix}{name}" for name in schemas}
    assert wanted


def test_every_schema_is_one() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    jsonschema.Draft202012Validator.check_schema({"$defs": schemas})


def test_nothing_private_is_in_it() -> None:
    for word in PRIVATE:
        assert word not in json.dumps(DOCUMENT)


def test_every_problem_is_described_as_one() -> None:
    for operation in OPERATIONS.values():
        for status, response in operation["responses"].items():
            if status >= "400":
                schema = response["content"]["application/problem+json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Problem"}


def test_links_name_operations_that_are_there() -> None:
    for operation in OPERATIONS.values():
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                target = OPERATIONS[link["operationId"]]
                names = {parameter["name"] for parameter in target["parameters"]}
                assert set(link["parameters"]) <= names


def test_a_shape_that_is_not_there_is_noticed() -> None:
    app = create_app("memory:")
    schema = {"$ref": "#/components/schemas/Nobody"}
    responses: Any = {200: {"content": {"application/json": {"schema": schema}}}}
    app.add_api_route("/odd", lambda: None, responses=responses)
    with pytest.raises(AssertionError, match="Nobody"):
        app.openapi()


def test_the_document_is_served_and_sent_again_only_if_it_changed(api: Api) -> None:
    served = api.get("/openapi.json")
    assert served.json() == DOCUMENT
    assert served.headers["content-type"] == "application/json"
    assert served.headers["content-encoding"] == "gzip"
    plain = api.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    assert (plain.content, plain.headers["etag"]) == (served.content, served.headers["etag"])
    known = api.get("/openapi.json", headers={"If-None-Match": served.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")


async def test_the_document_names_the_path_under_which_the_application_is_mounted() -> None:
    outer = FastAPI()
    outer.mount("/asks", create_app("memory:"))
    transport = httpx2.ASGITransport(outer)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        served = (await client.get("/asks/openapi.json")).json()
    assert served == DOCUMENT | {"servers": [{"url": "/asks"}]}


def test_the_page_is_made_of_files_from_here(api: Api) -> None:
    page = api.get("/docs").text
    addresses = re.findall(r"""(?:href|src|url)\s*[=:]\s*["']([^"']+)["']""", page)
    assert len(addresses) >= 4
    for address in addresses:
        assert "//" not in address
        found = api.get(f"/{address}")
        assert found.status_code == 200
        assert found.content


# What the others use has to last: only the demo session may be removed, and one request ended.
CONFIG = """
[parameters]
wait = 0

[[operations]]
include-name-regex = "^DELETE /v1/sessions/.id.(/turns/active)?$"
parameters = {{ id = "demo" }}

[[operations]]
include-name-regex = "(DELETE .*/requests/.rid.|/complete)$"
parameters = {{ id = "lasting", rid = "{ending}" }}

[[operations]]
include-path-regex = "/requests/.rid."
parameters = {{ id = "lasting", rid = "{lasting}", qid = "name" }}

[[operations]]
include-path-regex = "^/v1/sessions/.id./"
parameters = {{ id = "lasting" }}
"""


@pytest.mark.slow
def test_nothing_that_the_document_allows_breaks_the_server(tmp_path: Path) -> None:
    """Streams do not end, and recordings are no JSON; both have tests of their own."""
    with serving("memory:", "--demo") as server, Api(server.url) as api:
        session = api.post("/v1/sessions", json={"resource": "ahp-session:/lasting"})
        ids = [api.ask(session.headers["location"], questions=QUESTIONS)["id"] for _ in range(2)]
        config = tmp_path / "schemathesis.toml"
        config.write_text(CONFIG.format(lasting=ids[0], ending=ids[1]))
        done = schemathesis(server, config, tmp_path)
        assert done.returncode == 0, done.stdout[-8000:]
        assert "Traceback" not in "".join(server.output)


def schemathesis(
    server: ServerProcess, config: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={config}", "run"]
    options = [
        "--exclude-path-regex=(events|replay)$",
        # What is refused is refused by rules that a schema cannot tell.
        "--exclude-checks=positive_data_acceptance,ensure_resource_availability",
        "--max-examples=12",
        "--request-timeout=10",
        "--no-color",
    ]
    return subprocess.run(
        [*command, *options, f"{server.url}/openapi.json"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
