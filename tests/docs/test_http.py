"""The commands of the page on HTTP are run, in their order, and answer as it says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from session_server.schemas import limits
from session_server.web.streams import HEARTBEAT_SECONDS
from tests.servers import serving

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
ADDRESS = "http://127.0.0.1:8737"
MARK = "=== next ==="


def examples() -> list[tuple[str, str]]:
    """Commands and what they print."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> "):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def as_promised(promised: str, printed: str) -> bool:
    """`…` stands for anything, at the end of a line for the rest of it."""
    pattern = ".*".join(map(re.escape, promised.strip().split("…")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_every_command_answers_as_the_page_says(tmp_path: Path) -> None:
    with serving("memory:") as server:
        commands = "\n".join(f"{command}\necho; echo '{MARK}'" for command, _ in examples())
        done = subprocess.run(
            ["bash", "-c", commands.replace(ADDRESS, server.url)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    printed = done.stdout.split(MARK)
    assert len(printed) == len(examples()) + 1
    for (command, promised), actual in zip(examples(), printed, strict=False):
        assert as_promised(promised, actual), f"{command}\n{actual}"


def test_the_numbers_on_the_page_are_the_real_ones() -> None:
    page = " ".join(PAGE.read_text().split())
    assert f"at most {limits.WAIT_SECONDS} seconds" in page
    assert f"every {HEARTBEAT_SECONDS:.0f} seconds" in page
    assert f"more than {limits.OUTBOX_BYTES // 2**20} MiB wait" in page
    assert f"{limits.FRAME_BYTES // 2**20} MiB and {limits.JSON_DEPTH} levels" in page
    assert f"until {limits.OUTCOMES_KEPT} later" in page
    assert limits.OUTCOME_LIFETIME_MS == 7 * 24 * 3_600_000
