"""The gate's own check can fail."""

import json
from pathlib import Path

import pytest

from tests.coverage_gate import faults, main, sources


def test_a_file_that_is_not_in_the_report_is_found() -> None:
    assert faults({"schemas/a.py", "schemas/b.py"}, {"schemas/a.py"}) == [
        "not in the report: schemas/b.py"
    ]


def test_a_file_measured_through_a_link_is_found() -> None:
    reported = {"schemas/a.py", "session_server/schemas/a.py", "session_server/cli.py"}
    assert faults({"schemas/a.py"}, reported) == [
        "measured through a link: session_server/schemas/a.py"
    ]


def test_every_source_of_both_folders_is_expected() -> None:
    found = sources(Path(__file__).resolve().parent.parent)
    assert {"reducers/__init__.py", "schemas/__init__.py", "schemas/codec.py"} <= found


def test_an_empty_checkout_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": {}}))
    assert main(str(report)) == 1
    assert "no sources found" in capsys.readouterr().err
