"""The generated pages are current and complete, and the builder says when they are not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs import build
from docs.error_reference import error_rows
from docs.wire_documents import asyncapi, json_schema
from session_server.schemas import limits
from session_server.schemas.documents import ERROR_DATA
from session_server.schemas.errors import ErrorCode, RefusalCode

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 60


def rows(page: str) -> list[list[str]]:
    """The cells of a page's table, without its head."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_committed_pages_are_current() -> None:
    assert build.stale(build.REFERENCE) == []


def test_no_page_is_left_from_earlier() -> None:
    assert {path.name for path in build.REFERENCE.iterdir()} == set(build.pages())


def test_the_documents_are_written_whole() -> None:
    written = build.wire_documents()
    assert json.loads(written["ahp.schema.json"]) == json_schema()
    assert json.loads(written["asyncapi.json"]) == asyncapi()


def test_a_page_ends_with_one_newline_and_names_no_place_on_a_machine() -> None:
    for name, text in (build.pages() | build.wire_documents()).items():
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name
        assert str(ROOT) not in text, name


def test_every_refusal_is_explained() -> None:
    assert set(build.MEANINGS) == set(RefusalCode)
    assert [row[0] for row in rows(build.refusals_page())] == [str(code) for code in RefusalCode]


def test_every_error_code_is_explained() -> None:
    assert set(build.ERROR_MEANINGS) == set(ErrorCode)
    table = rows(build.errors_page().partition("## All errors")[0])
    assert [(int(row[0]), row[1]) for row in table] == [(c.value, c.name) for c in ErrorCode]
    assert {row[3] for row in table if row[3]} == {s.__name__ for s in ERROR_DATA.values()}


def test_every_error_has_a_code_and_a_meaning_of_its_own() -> None:
    table = {row[0].strip("· `"): row for row in error_rows()}
    assert len(table) > 60
    assert [name for name, row in table.items() if row[1] == "`internal`"] == ["SessionServerError"]
    meanings = [row[-1] for row in table.values()]
    assert [text for text in meanings if not text or meanings.count(text) > 1] == []


def test_every_limit_is_explained() -> None:
    numbers = {name: value for name, value in vars(limits).items() if isinstance(value, int)}
    assert set(build.LIMIT_MEANINGS) == set(numbers)
    told = {name: int(number.replace(",", "")) for name, number, _ in rows(build.limits_page())}
    assert told == numbers


@pytest.mark.parametrize("table", ["MEANINGS", "LIMIT_MEANINGS", "ERROR_MEANINGS"])
def test_every_meaning_is_a_sentence_of_its_own(table: str) -> None:
    meanings = list(getattr(build, table).values())
    assert len(set(meanings)) == len(meanings)
    assert all(text[0].isupper() and text.endswith(".") and "|" not in text for text in meanings)


def test_writing_makes_the_pages_current(tmp_path: Path) -> None:
    folder, built = tmp_path / "new" / "reference", tmp_path / "build"
    assert build.main([], folder, built) == 0
    assert build.main(["--check"], folder) == 0
    assert {path.name for path in folder.iterdir()} == set(build.pages())
    assert {path.name for path in built.iterdir()} == set(build.wire_documents())


def test_checking_names_the_stale_pages_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build.write(tmp_path, build.pages())
    (tmp_path / "limits.md").write_text("# Old\n")
    (tmp_path / "cli.md").unlink()
    assert build.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == ["stale: docs/reference/cli.md", "stale: docs/reference/limits.md"]
    assert (tmp_path / "limits.md").read_text() == "# Old\n"
    assert not (tmp_path / "cli.md").exists()


@pytest.mark.slow
def test_the_builder_runs_as_a_script() -> None:
    done = subprocess.run(
        [sys.executable, "docs/build.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
