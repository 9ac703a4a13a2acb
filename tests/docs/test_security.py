"""The threat model names tests, and they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def threats() -> list[list[str]]:
    """The rows of the table of threats."""
    table = PAGE.partition("## Threats")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_every_test_that_the_threat_model_names_exists() -> None:
    texts = {path: (ROOT / path).read_text() for path, _ in NAMED}
    assert [(path, name) for path, name in NAMED if f"def {name}(" not in texts[path]] == []


def test_every_threat_is_covered_by_a_test() -> None:
    assert len(threats()) > 20
    assert [row[0] for row in threats() if len(row) != 3 or "`tests/" not in row[2]] == []


def test_every_mention_of_a_test_is_understood() -> None:
    assert len(NAMED) == PAGE.count("`tests/")
