"""The official conformance suite, judged by its single checks."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mcp import zoo

SUITE = zoo.NODE_PACKAGES / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SECONDS = 330

_CHECK = re.compile(r"\[([a-zA-Z0-9$-]+)\s*\] (SUCCESS|FAILURE|WARNING|SKIPPED|INFO)\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RESULTS = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d\d-\d\dT")

Passed = dict[str, set[str]]
"""The checks that have passed, by scenario."""


class Run(NamedTuple):
    """`checks`: the verdict of each, by name."""

    code: int
    checks: dict[str, str]
    output: str


def run(folder: Path, *arguments: str) -> Run:
    """Runs the suite in `folder`, where it leaves its results."""
    command: Sequence[str] = [zoo.runtime("typescript"), str(SUITE), *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    output = _COLOUR.sub("", done.stdout + done.stderr)
    return Run(done.returncode, dict(_CHECK.findall(output)), output)


def passed(folder: Path, url: str, revision: str, scenario: str | None = None) -> Passed:
    """What a server passes: of all scenarios of a revision, in one process, or of one."""
    which = ("--suite", "all") if scenario is None else ("--scenario", scenario)
    run(folder, "server", "--url", url, *which, "--spec-version", revision, "-o", str(folder))
    found: Passed = {}
    for file in folder.glob("server-*/checks.json"):
        matched = _RESULTS.match(file.parent.name)
        assert matched is not None, file
        checks = json.loads(file.read_text())
        found[matched["scenario"]] = {c["id"] for c in checks if c["status"] == "SUCCESS"}
        if any(check["status"] == "FAILURE" for check in checks):
            found[matched["scenario"]] = set()
    return found
