"""What the wire decides without a host is tested in its own language."""

import re

from tests.page.wire.node import run_tests


def test_the_parts_of_the_wire_do_what_they_promise() -> None:
    passed = re.search(r"pass (\d+)", run_tests("units.test.js"))
    assert passed is not None
    assert int(passed[1]) > 20


def test_versions_and_patterns_are_judged_as_they_should_be() -> None:
    passed = re.search(r"pass (\d+)", run_tests("versions.test.js"))
    assert passed is not None
    assert int(passed[1]) == 4
