"""Every bound is tried somewhere: no number stands in the list that no test mentions."""

import re
from pathlib import Path

from session_server.schemas import limits

TESTS = Path(__file__).parent
NAME = re.compile(r"\b[A-Z][A-Z_]+\b")


def test_every_limit_is_tried() -> None:
    files = (path for path in TESTS.rglob("*.py") if path != Path(__file__))
    tried = {word for path in files for word in NAME.findall(path.read_text())}
    named = {name for name in vars(limits) if name.isupper()}
    assert {name for name in named if name not in tried} == set()
