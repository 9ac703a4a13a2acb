"""The commands of the page on HTTP are run, in their order, and answer as it says."""

import shutil
from pathlib import Path

import pytest

from session_server.http.streaming import HEARTBEAT_SECONDS
from session_server.schemas import limits
from tests.docs.consoles import examples, printed_by
from tests.servers import serving

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
ADDRESS = "http://127.0.0.1:8737"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_every_command_answers_as_the_page_says(tmp_path: Path) -> None:
    shown = examples(PAGE)
    with serving("memory:") as server:
        commands = [example.command.replace(ADDRESS, server.url) for example in shown]
        printed = printed_by(commands, tmp_path)
    for example, actual in zip(shown, printed, strict=True):
        assert example.is_kept_by(actual), f"{example.command}\n{actual}"


def test_the_numbers_on_the_page_are_the_real_ones() -> None:
    page = " ".join(PAGE.read_text().split())
    assert f"at most {limits.WAIT_SECONDS} seconds" in page
    assert f"every {HEARTBEAT_SECONDS:.0f} seconds" in page
    assert f"more than {limits.OUTBOX_BYTES // 2**20} MiB wait" in page
    assert f"{limits.FRAME_BYTES // 2**20} MiB and {limits.JSON_DEPTH} levels" in page
    assert f"until {limits.OUTCOMES_KEPT} later" in page
    assert limits.OUTCOME_LIFETIME_MS == 7 * 24 * 3_600_000
