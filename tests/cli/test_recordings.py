"""`export` and `replay`: a file that can be kept, compared and watched."""

import json
import time
from pathlib import Path

import pytest

from session_server.cli.failures import ExitCode
from tests.cli.shells import Shell
from tests.servers import serving


@pytest.fixture(scope="module")
def tape(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shell("ask", "Ready?", "--session", "tape", "--no-wait")
    shell("answer", "tape", "--accept")
    file = tmp_path_factory.mktemp("tapes") / "tape.jsonl"
    assert shell("export", "tape", "-o", str(file)).code == ExitCode.OK
    return file


@pytest.mark.slow
def test_a_second_export_is_the_same_byte_for_byte(
    shell: Shell, tape: Path, tmp_path: Path
) -> None:
    with serving("memory:") as empty:
        elsewhere = Shell(empty.url)
        played = elsewhere("replay", str(tape))
        assert (played.code, played.out) == (
            ExitCode.OK,
            f"Replay finished: {empty.url}/#/s/tape\n",
        )
        again = elsewhere.process("export", "tape")
        assert again.out == tape.read_text()
        assert "Someone answered “Ready?”" in elsewhere("watch", "tape", "--until", "idle").out
        refused = elsewhere("replay", str(tape))
        assert refused.code == ExitCode.FAILED
        assert "--as NAME" in refused.err
        assert elsewhere("replay", str(tape), "--as", "copy").code == ExitCode.OK
        copied = elsewhere.process("export", "copy").out
        assert copied.replace("ahp-session:/copy", "ahp-session:/tape") == tape.read_text()


@pytest.mark.slow
def test_a_recording_plays_in_real_time(shell: Shell, tape: Path, tmp_path: Path) -> None:
    head, *entries, end = [json.loads(line) for line in tape.read_text().splitlines()]
    for number, entry in enumerate(entries):
        entry["stamp"]["at"] = 1_000_000 + 400 * number
    slow = tmp_path / "slow.jsonl"
    slow.write_text("".join(json.dumps(line) + "\n" for line in (head, *entries, end)))
    with serving("memory:") as empty:
        elsewhere, began = Shell(empty.url), time.monotonic()
        with elsewhere.running("replay", str(slow), "--speed", "2") as playing:
            playing.hear("session-server watch tape", on="err")
            assert playing.end().code == ExitCode.OK
        assert time.monotonic() - began > 0.2 * (len(entries) - 1)
        assert elsewhere("dispose", "tape", "--yes").code == ExitCode.OK
        quick = elsewhere("replay", str(slow), "--speed", "0.01", "--idle-limit", "0.01s")
        assert quick.code == ExitCode.OK


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", ExitCode.USAGE, "is not a session recording"),
        ("nonsense\n", ExitCode.USAGE, "is not a session recording"),
        ('{"kind":"cassette","version":1,"session":"x:/1"}\n', ExitCode.USAGE, "cut off"),
        ('{"kind":"cassette","version":9,"session":"x:/1"}\n', ExitCode.USAGE, "version"),
    ],
)
def test_an_invalid_recording_is_reported(
    shell: Shell, tmp_path: Path, text: str, code: ExitCode, message: str
) -> None:
    file = tmp_path / "no.jsonl"
    file.write_text(text)
    done = shell("replay", str(file))
    assert (done.code, message in done.err) == (code, True)


def test_files_that_cannot_be_used_are_named(shell: Shell, tape: Path, tmp_path: Path) -> None:
    missing = shell("replay", str(tmp_path / "none.jsonl"))
    assert (missing.code, "cannot be read" in missing.err) == (ExitCode.USAGE, True)
    unwritable = shell("export", "tape", "-o", str(tmp_path))
    assert (unwritable.code, "cannot be written" in unwritable.err) == (ExitCode.FAILED, True)
    lone = shell("replay", str(tape), "--idle-limit", "1s")
    assert (lone.code, "needs --speed" in lone.err) == (ExitCode.USAGE, True)
