"""The README's commands and Python are run, and what it links to is there."""

import doctest
import json
import re
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.shells import Shell
from tests.docs.consoles import printed_by
from tests.docs.test_python_client import printed_by as printed_by_python
from tests.servers import serving

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_readmes_python_gives_what_it_says() -> None:
    results = doctest.testfile(str(README), module_relative=False)
    assert results.attempted > 10
    assert results.failed == 0


ANSWERS = """
- {message: "Deploy 1.4 to production?", response: accept}
- {message: Release, answers: {env: staging, replicas: 2}}
- {tool: deploy, answers: {environment: staging, percent: 20}}
- {message: "Release 1.4?", answers: {env: prod}}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_readmes_commands_and_programs_do_what_it_says(tmp_path: Path) -> None:
    (mcp_json,) = (block for block in blocks("json") if '"ops"' in block)
    here = mcp_json.replace('"python"', json.dumps(sys.executable))
    (tmp_path / "mcp.json").write_text(here)
    (tmp_path / "answers.yaml").write_text(ANSWERS)
    deploy = tmp_path / "deploy"
    deploy.write_text("#!/bin/sh\necho deploying\n")
    deploy.chmod(0o755)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [
        line for line in lines if line.startswith("session-server") and " serve" not in line
    ]
    program = next(block for block in blocks("python") if block.startswith("async with connect"))
    wrapped = (
        "import asyncio\nfrom session_server.client import connect\n"
        "def deploy(where): print('deploying to', where)\n"
        f"async def main():\n{textwrap.indent(program, '    ')}\nasyncio.run(main())\n"
    )
    with serving("memory:", "--mcp-config", str(tmp_path / "mcp.json")) as server:
        fixture = str(tmp_path / "answers.yaml")
        with Shell(server.url).running("answer", "--all", "--fixture", fixture, "--follow"):
            printed = printed_by(commands, tmp_path, SESSION_SERVER_URL=server.url)
            assert printed_by_python(wrapped, server.url) == "deploying to prod\n"
    asked, release, token, called = printed
    assert asked.rstrip().endswith("deploying")
    assert "env=staging\nreplicas=2" in release
    assert "?tkn=" in token
    assert "web 1.4.2 is out in staging (20 %)" in called


def test_the_readmes_configurations_are_json() -> None:
    for block in blocks("json"):
        assert set(json.loads(block)) == {"mcpServers"}


def test_links_between_pages_lead_somewhere() -> None:
    pages = [
        README,
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("tests/**/*.md"),
    ]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert dead == []
