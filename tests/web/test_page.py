"""The page's files: served from the package, under a policy that allows nothing but themselves."""

import re
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path

import pytest

from tests.servers import ServerProcess

FOLDER = Path(__file__).resolve().parents[2] / "web_demo"
FILES = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*")
    if path.suffix in (".js", ".css", ".svg")
)
DEADLINE = 20


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, Message, str]:
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_the_front_page_names_only_files_that_are_there(host: ServerProcess) -> None:
    status, headers, html = get(host.url)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert named
    for name in named:
        assert get(f"{host.url}/{name}")[0] == 200


def test_every_module_is_named_so_that_none_is_waited_for(host: ServerProcess) -> None:
    html = get(host.url)[2]
    preloaded = set(re.findall(r'rel="modulepreload" href="([^"]+)"', html))
    assert preloaded == {name for name in FILES if name.endswith(".js") and name != "main.js"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_its_type_and_policy(host: ServerProcess, name: str) -> None:
    status, headers, body = get(f"{host.url}/{name}")
    assert status == 200
    assert body == (FOLDER / name).read_text()
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert headers.get_content_type() == kinds[name.rpartition(".")[2]]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-cache"


def test_the_policy_allows_nothing_but_the_page_itself(host: ServerProcess) -> None:
    policy = get(host.url)[1]["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert set(rules.values()) == {"'self'", "'none'"}


def test_an_unchanged_file_is_not_sent_again(host: ServerProcess) -> None:
    tag = get(f"{host.url}/main.js")[1]["ETag"]
    status, headers, body = get(f"{host.url}/main.js", **{"If-None-Match": tag})
    assert (status, body) == (304, "")
    assert "Content-Security-Policy" in headers


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "wire/types.d.ts",
        "wire/..%2f..%2fapp.py",
        "wire/../../app.py",
        "wire/",
        "no.js",
    ],
)
def test_nothing_else_is_served(host: ServerProcess, path: str) -> None:
    assert get(f"{host.url}/{path}")[0] == 404


def test_the_page_leaves_the_methods_of_the_api_alone(host: ServerProcess) -> None:
    status, headers, _ = get(f"{host.url}/v1/sessions", "DELETE")
    assert status == 405
    assert "Allow" in headers


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    """No address of another site is loaded; those that are named are namespaces and examples."""
    for name in [*FILES, "index.html"]:
        text = (FOLDER / name).read_text()
        assert not re.search(r'(?:import|from|src=|href=|url\(|fetch\()\s*["\'(]*https?:', text), (
            name
        )
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", text), name
