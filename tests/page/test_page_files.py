"""The page's files: served from the package, under a strict policy."""

import gzip
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path

import pytest
from playwright.sync_api import expect

from session_server.http.page import Page
from tests.page.browser import Person
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


def place_of(host: ServerProcess) -> str:
    """Where the files are for as long as none of them changes."""
    found = re.search(r'src="(page/[0-9a-f]+)/main\.js"', get(host.url)[2])
    return f"{host.url}/{found[1]}"


def test_front_page_links_only_existing_files(host: ServerProcess) -> None:
    status, headers, html = get(host.url)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert named
    for name in named:
        assert get(f"{host.url}/{name}")[0] == 200


def test_every_module_is_preloaded(host: ServerProcess) -> None:
    html = get(host.url)[2]
    preloaded = set(re.findall(r'rel="modulepreload" href="([^"]+)"', html))
    modules = {name for name in FILES if name.endswith(".js") and name != "main.js"}
    assert {name.split("/", 2)[2] for name in preloaded} == modules


def test_files_have_type_and_policy(host: ServerProcess) -> None:
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    place = place_of(host)
    for name in FILES:
        is_icon = name.endswith(".svg")
        status, headers, body = get(f"{host.url if is_icon else place}/{name}")
        assert (status, body) == (200, (FOLDER / name).read_text())
        assert headers.get_content_type() == kinds[name.rpartition(".")[2]]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Content-Security-Policy" in headers
        assert ("immutable" in headers["Cache-Control"]) is not is_icon


def test_files_are_compressed(host: ServerProcess) -> None:
    for url in (host.url, f"{place_of(host)}/main.js"):
        request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip, br"})
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            packed = answer.read()
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed).decode() == get(url)[2]


def test_only_the_current_version_is_cached_for_good(host: ServerProcess) -> None:
    status, headers, _ = get(f"{host.url}/page/0123456789abcdef/main.js")
    assert (status, headers["Cache-Control"]) == (200, "no-cache")


def test_changed_file_gets_another_address(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    shutil.copytree(FOLDER, folder)
    before = Page(folder).front().text
    assert Page(folder).front().text == before
    (folder / "main.js").write_text("// changed\n")
    assert Page(folder).front().text != before


def test_policy_allows_only_the_page_itself(host: ServerProcess) -> None:
    policy = get(host.url)[1]["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert set(rules.values()) == {"'self'", "'none'"}


def test_unchanged_file_is_not_sent_again(host: ServerProcess) -> None:
    tag = get(host.url)[1]["ETag"]
    status, headers, body = get(host.url, **{"If-None-Match": tag})
    assert (status, body) == (304, "")
    assert "Content-Security-Policy" in headers


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "main.js",
        "page/1/README.md",
        "page/1/client/..%2f..%2fapp.py",
        "page/1/client/../../app.py",
        "page/1/index.html",
        "page/1/client/",
        "page/1/no.js",
        "page/",
    ],
)
def test_other_files_are_not_served(host: ServerProcess, path: str) -> None:
    assert get(f"{host.url}/{path}")[0] == 404


def test_page_routes_do_not_hide_the_api(host: ServerProcess) -> None:
    status, headers, _ = get(f"{host.url}/v1/sessions", "DELETE")
    assert status == 405
    assert "Allow" in headers


def test_page_loads_nothing_from_other_hosts() -> None:
    """No address of another site is loaded; those that are named are namespaces and examples."""
    for name in [*FILES, "index.html"]:
        text = (FOLDER / name).read_text()
        assert not re.search(r'(?:import|from|src=|href=|url\(|fetch\()\s*["\'(]*https?:', text), (
            name
        )
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", text), name


def test_api_page_works_under_its_policy(
    person: Callable[..., Person], host: ServerProcess
) -> None:
    headers = get(f"{host.url}/docs")[1]
    policy = headers["Content-Security-Policy"]
    scripts = next(each for each in policy.split("; ") if each.startswith("script-src"))
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in scripts
    assert headers["Referrer-Policy"] == "no-referrer"
    reader = person(None)
    ana = reader.goes_to("docs")
    ana.get_by_text("/v1/me", exact=True).click()
    ana.get_by_role("button", name="Execute").click()
    expect(ana.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert reader.complaints == []
    # Whatever somebody manages to write into it does not run.
    ana.evaluate(
        """() => {
          const added = document.createElement("script");
          added.textContent = "window.isOwned = true";
          document.addEventListener("securitypolicyviolation", () => (window.isStopped = true));
          document.body.append(added);
        }"""
    )
    ana.wait_for_function("window.isStopped")
    assert ana.evaluate("window.isOwned") is None
    reader.complaints.clear()  # the browser has reported what it stopped
