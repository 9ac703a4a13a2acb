"""Unit tests of the client, in JavaScript."""

import json
import re

from tests.npm_modules import ROOT
from tests.page.client.node import run_tests


def test_units_of_the_client() -> None:
    passed = re.search(r"pass (\d+)", run_tests("units.test.js"))
    assert int(passed[1]) > 20


def test_draft_states_follow_the_corpus() -> None:
    cases = json.loads((ROOT / "tests/corpus/draft_field.json").read_text())
    passed = re.search(r"pass (\d+)", run_tests("draft-state.test.js"))
    assert int(passed[1]) > len(cases)
