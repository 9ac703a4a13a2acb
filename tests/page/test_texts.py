"""Texts that were replaced do not come back."""

import re

import pytest

from tests.npm_modules import ROOT

OLD = (
    "No agent listens",
    "did not get in",
    "it was never sent",
    "Two versions",
    "Choose which version",
    "Take back",
    "Take it back",
    "Submit all",
    "Choose any number",
    "One less",
    "One more",
    "answer of your own",
    "The rest is the owner",
    "Whoever has the link",
    "Make a link",
    "if it is for one person",
    "Anyone who has it",
    "does not allow notices",
    "out of the archive",
    "proposed answers are used",
    "Blanks alone",
    "waits for the connection",
)


@pytest.mark.parametrize("old", OLD)
def test_page_does_not_use_replaced_texts(old: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "web_demo").rglob("*.js"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if old in line and not re.match(r"\s*(//|\*|/\*)", line)
    ]
    assert found == []
