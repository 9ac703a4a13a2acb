"""The official conformance suite: one scenario at a time, judged by its single checks."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mcp import zoo

SUITE = zoo.NODE_PACKAGES / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SECONDS = 330

_CHECK = re.compile(r"\[([a-z0-9-]+)\s*\] (SUCCESS|FAILURE|WARNING|SKIPPED|INFO)\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Run(NamedTuple):
    """`checks`: what became of each, by name."""

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
