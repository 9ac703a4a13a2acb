"""Fixtures: which rule is for which request, and what is refused rather than guessed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from session_server.cli.failures import UsageError
from session_server.cli.fixtures import (
    Rule,
    UnanswerableError,
    answers_from,
    read_fixture,
    rule_for,
)
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    InputRequest,
    MultiSelectQuestion,
    Option,
    RequestMeta,
    ResponseKind,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)

SESSION = "ahp-session:/ci"
REQUEST = InputRequest(
    id="call:c1/0/confirm",
    message="Deploy?",
    questions=(
        TextQuestion(id="env", title="Environment", message="Which one?", required=True),
        BooleanQuestion(id="sure", message="Are you sure?"),
        MultiSelectQuestion(
            id="checks", message="Which checks?", options=(Option(id="lint", label="Lint"),)
        ),
    ),
    meta=RequestMeta(server="ops", tool="deploy", key="confirm"),
)


@pytest.mark.parametrize(
    ("says", "is_for"),
    [
        ({"request": "call:c1/0/confirm"}, True),
        ({"request": "call:c1/0"}, False),
        ({"message": "Deploy?"}, True),
        ({"message": "deploy?"}, False),
        ({"server": "ops", "tool": "deploy", "key": "confirm"}, True),
        ({"tool": "deploy", "key": "other"}, False),
        ({"question": "env"}, True),
        ({"question": "Environment"}, True),
        ({"question": "Which one?"}, True),
        ({"question": "nothing"}, False),
        ({"tool": "deploy", "session": "ci"}, True),
        ({"tool": "deploy", "session": "ahp-session:/ci"}, True),
        ({"tool": "deploy", "session": "elsewhere"}, False),
    ],
)
def test_a_rule_is_for_what_it_says_and_nothing_else(says: dict[str, str], is_for: bool) -> None:
    assert Rule(**says).is_for(SESSION, REQUEST) is is_for


def test_a_request_that_no_call_made_has_no_tool() -> None:
    plain = InputRequest(id="r", message="Deploy?")
    assert not Rule(tool="deploy").is_for(SESSION, plain)
    assert Rule(message="Deploy?").is_for(SESSION, plain)


def test_one_rule_answers_and_two_are_one_too_many() -> None:
    by_tool, by_key = Rule(tool="deploy"), Rule(key="confirm")
    assert rule_for([Rule(tool="other"), by_tool], SESSION, REQUEST) == 2
    with pytest.raises(UnanswerableError, match="Rules 1 and 2 both match it"):
        rule_for([by_tool, by_key], SESSION, REQUEST)
    with pytest.raises(
        UnanswerableError, match=r"No rule.*tool: deploy, key: confirm, question: env"
    ):
        rule_for([], SESSION, REQUEST)


def test_answers_are_given_by_id_title_or_text() -> None:
    rule = Rule(
        tool="deploy",
        answers={"Environment": "prod", "Are you sure?": True, "checks": ["lint"]},
    )
    answers = answers_from(rule, REQUEST)
    assert answers["env"] == Submitted(value=TextValue(value="prod"))
    assert set(answers) == {"env", "sure", "checks"}
    assert answers_from(Rule(tool="deploy", answers={"sure": None}), REQUEST) == {"sure": Skipped()}
    assert answers_from(Rule(tool="x", response=ResponseKind.DECLINE), REQUEST) is None


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"env": " "}, "Environment: an answer is required"),
        ({"nope": 1}, "no question 'nope'. Its questions are: env, sure, checks"),
        ({"sure": "yes"}, "takes True or False"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_a_reason(
    answers: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnanswerableError, match=reason):
        answers_from(Rule(tool="deploy", answers=answers), REQUEST)


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_a_fixture_is_a_list_or_an_object_in_yaml_or_json(tmp_path: Path, write: Any) -> None:
    rules = [{"tool": "deploy", "answers": {"env": "prod"}}, {"key": "x", "response": "decline"}]
    for number, document in enumerate((rules, {"rules": rules})):
        file = tmp_path / f"{number}"
        file.write_text(write(document))
        read = read_fixture(file)
        assert [(rule.tool, rule.key, rule.response) for rule in read] == [
            ("deploy", None, ResponseKind.ACCEPT),
            (None, "x", ResponseKind.DECLINE),
        ]


def test_a_date_without_quotes_is_the_text_that_it_looks_like(tmp_path: Path) -> None:
    file = tmp_path / "dates.yaml"
    file.write_text("- question: day\n  answers: {day: 2026-01-31, at: 2026-01-31T10:00:00Z}\n")
    (rule,) = read_fixture(file)
    assert rule.answers == {"day": "2026-01-31", "at": "2026-01-31T10:00:00Z"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- answers: {a: 1}", "rule 1 does not name the requests that it matches"),
        ("- session: ci", "rule 1 does not name the requests that it matches"),
        ("- {tool: x, response: decline, answers: {a: 1}}", "but its response is decline"),
        ("- {tol: x}", "unknown field `tol`"),
        ("- {tool: x, response: maybe}", "Invalid enum value 'maybe'"),
        ("tool: x", "must be a list of rules"),
        ("just words", "must be a list of rules"),
        ("answers: {a: 1}", "must be a list of rules"),
        ("{", "neither JSON nor YAML"),
    ],
)
def test_an_invalid_fixture_is_explained(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "fixture.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=reason):
        read_fixture(file)


def test_the_advice_never_lists_what_was_called_unknown(tmp_path: Path) -> None:
    file = tmp_path / "fixture.yaml"
    file.write_text("- {tol: x}")
    with pytest.raises(UsageError) as caught:
        read_fixture(file)
    assert "tool" in caught.value.advice.replace(",", "").split()
    assert "tol" not in caught.value.advice.replace(",", "").split()


def test_json_with_escaped_emoji_is_read(tmp_path: Path) -> None:
    file = tmp_path / "emoji.json"
    file.write_text(json.dumps([{"message": "Launch \N{ROCKET}?"}]))
    (rule,) = read_fixture(file)
    assert rule.message == "Launch \N{ROCKET}?"


@pytest.mark.parametrize("text", ['[{"message": "\\ud83d"}]', '- message: "\\ud83d"'])
def test_half_of_a_surrogate_pair_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "half.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="surrogate"):
        read_fixture(file)


def test_a_fixture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml cannot be read: No such file"):
        read_fixture(tmp_path / "none.yaml")
