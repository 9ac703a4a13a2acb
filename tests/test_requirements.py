"""Every rule that is not pending is proven by a test, and no pending one is."""

from pathlib import Path

import pytest

from tests.requirements_check import Rule, faults, overtaken, proofs_of, unproven
from tests.requirements_table import table_of

RULES = """
[area.topic]
now = "Holds now."

[pending]
"area.topic.later" = "Holds later."
"""


def test_every_rule_has_a_test(request: pytest.FixtureRequest) -> None:
    proofs = proofs_of(request.config)
    if proofs.is_partial:
        pytest.skip("only some of the tests were looked at")
    missing = unproven(proofs.rules, proofs.tests)
    assert not missing, f"{len(missing)} rules have no test: {', '.join(missing)}"


def test_no_pending_rule_has_a_test(request: pytest.FixtureRequest) -> None:
    proofs = proofs_of(request.config)
    early = overtaken(proofs.rules, proofs.tests)
    assert not early, f"no longer pending: {', '.join(early)}"


def test_the_list_is_well_formed(request: pytest.FixtureRequest) -> None:
    assert faults(proofs_of(request.config).rules) == []


def test_the_table_counts_every_rule_once(request: pytest.FixtureRequest) -> None:
    proofs = proofs_of(request.config)
    namespaces = {rule.namespace for rule in proofs.rules}
    assert table_of(proofs).row_count == len(namespaces)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (Rule("short", "Something holds."), "not an id"),
        (Rule("area.topic.rule", ""), "its text"),
    ],
)
def test_a_malformed_rule_is_found(rule: Rule, fault: str) -> None:
    assert fault in faults([rule])[0]


def test_a_rule_listed_twice_is_found() -> None:
    rule = Rule("area.topic.rule", "Something holds.")
    assert "listed 2 times" in faults([rule, rule])[0]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Another project with two rules and these checks."""
    pytester.makeini("[pytest]\ntestpaths = tests\nmarkers =\n  proves(*ids)\n  slow\n")
    tests = pytester.mkdir("tests")
    (tests / "requirements.toml").write_text(RULES)
    checks = Path(__file__).read_text().partition("@pytest.mark.parametrize")[0]
    (tests / "test_requirements.py").write_text(checks)
    return pytester


def run(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    (project.path / "tests" / "test_proofs.py").write_text(f"import pytest\n{body}\n")
    return project.runpytest_inprocess("-p", "tests.requirements_check", *arguments)


def proof(*ids: str, mark: str = "slow") -> str:
    return f"@pytest.mark.{mark}\n@pytest.mark.proves(*{ids})\ndef test_it(): pass"


@pytest.mark.slow
def test_a_proven_list_passes(project: pytest.Pytester) -> None:
    run(project, proof("area.topic.now")).assert_outcomes(passed=5)


@pytest.mark.slow
def test_an_unproven_rule_fails(project: pytest.Pytester) -> None:
    result = run(project, "def test_it(): pass")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines("*1 rules have no test: area.topic.now")


@pytest.mark.slow
def test_a_proof_that_is_deselected_still_counts(project: pytest.Pytester) -> None:
    result = run(project, proof("area.topic.now"), "-k", "not test_it")
    result.assert_outcomes(passed=4, deselected=1)


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["skip", "xfail"])
def test_a_skipped_or_xfailed_test_proves_nothing(project: pytest.Pytester, mark: str) -> None:
    result = run(project, proof("area.topic.now", mark=mark))
    result.stdout.fnmatch_lines("*FAILED*test_every_rule_has_a_test*")


@pytest.mark.slow
def test_a_pending_rule_with_a_test_fails(project: pytest.Pytester) -> None:
    result = run(project, proof("area.topic.now", "area.topic.later"))
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines("*no longer pending: area.topic.later")


@pytest.mark.slow
def test_an_unknown_rule_stops_the_run(project: pytest.Pytester) -> None:
    result = run(project, proof("area.topic.unheard-of"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*area.topic.unheard-of in tests/test_proofs.py::test_it*")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("tests/test_requirements.py",), ("--ignore=tests/test_proofs.py",), ("--lf",)],
)
def test_completeness_is_not_checked_when_only_some_tests_are_collected(
    project: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    result = run(project, "def test_it(): pass", *arguments)
    outcomes = result.parseoutcomes()
    assert outcomes["skipped"] == 1
    assert "failed" not in outcomes
