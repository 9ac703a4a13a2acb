"""A host's own questions as an MCP result, and outcomes as tool results."""

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given

from session_server.reducers.calls.input_required import recognize_input_required
from session_server.reducers.forms.mcp_forms import questions_of
from session_server.reducers.offers import call_tool_result, input_required_of, requested_schema
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    QuestionMeta,
    ResponseKind,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.mcp import ElicitRequest, InputRequired, Unshowable
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.record import Outcome
from tests.mcp_strategies import requested_schemas

REGIONS = (
    Option(id="eu", label="Europe", description="Frankfurt", recommended=True),
    Option(id="us", label="America"),
)
PLAIN = (
    TextQuestion(
        id="mail",
        title="Mail",
        message="Where to?",
        required=True,
        format="email",
        min=3,
        max=80,
        default_value="a@example.com",
        meta=QuestionMeta(pattern="@"),
    ),
    NumberQuestion(id="ratio", message="Ratio?", min=0, max=1),
    IntegerQuestion(id="size", message="Size?", default_value=3),
    BooleanQuestion(id="sure", message="Sure?", default_value=False),
    MultiSelectQuestion(
        id="tags", message="Tags?", options=(Option(id="a", label="A"),), min=1, max=1
    ),
)


def test_what_mcp_can_say_is_said_without_loss() -> None:
    schema, losses = requested_schema(PLAIN)
    assert losses == ()
    assert schema["required"] == ["mail"]
    assert questions_of(schema) == PLAIN


def test_what_mcp_cannot_say_is_named_to_program_and_person() -> None:
    request = InputRequest(
        id="r",
        message="Deploy",
        questions=(
            SingleSelectQuestion(
                id="region", message="Region?", options=REGIONS, allow_freeform_input=True
            ),
            TextQuestion(id="host", message="Host?", format="hostname"),
        ),
    )
    offer = input_required_of({"deploy": request}, "state")
    assert offer.losses == (
        "Region?: answers of your own cannot be given here",
        "Region?: recommended: Europe",
        "Host?: the format 'hostname' is not checked",
    )
    embedded = (offer.result.input_requests or {})["deploy"]
    assert isinstance(embedded, ElicitRequest)
    assert all(loss in embedded.params.message for loss in offer.losses)
    schema = embedded.params.requested_schema
    assert schema is not None
    assert schema["properties"]["region"]["oneOf"] == [
        {"const": "eu", "title": "Europe – Frankfurt"},
        {"const": "us", "title": "America"},
    ]
    assert "format" not in schema["properties"]["host"]


def test_an_offer_is_recognised_as_what_it_is() -> None:
    offer = input_required_of(
        {
            "form": InputRequest(id="1", questions=PLAIN),
            "url": InputRequest(id="2", message="Sign in", url="https://x.example"),
            "consent": InputRequest(id="3"),
        },
        "",
    )
    wire = msgspec.to_builtins(offer.result)
    assert wire["inputRequests"]["url"]["params"]["mode"] == "url"
    assert recognize_input_required(wire) == offer.result
    assert isinstance(offer.result, InputRequired)


@given(requested_schemas())
def test_a_form_survives_the_way_there_and_back(schema: dict[str, Any]) -> None:
    """Apart from recommendations, which MCP has no word for."""
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable)
    again, losses = requested_schema(questions)
    jsonschema.Draft202012Validator.check_schema(again)
    asked_again = questions_of(again)
    assert not isinstance(asked_again, Unshowable)
    assert [(type(q), q.id, q.required) for q in asked_again] == [
        (type(q), q.id, q.required) for q in questions
    ]
    if not losses:
        assert msgspec.to_builtins(asked_again) == msgspec.to_builtins(
            tuple(q if q.message else msgspec.structs.replace(q, message=q.id) for q in questions)
        )


def outcome(response: ResponseKind, via: Provenance, **fields: Any) -> Outcome:
    questions = (
        TextQuestion(id="name", message="Name?"),
        IntegerQuestion(id="size", message="Size?"),
        SingleSelectQuestion(
            id="region", message="Region?", options=REGIONS, allow_freeform_input=True
        ),
    )
    request = InputRequest(id="r", message="A few things", questions=questions)
    return Outcome(request=request, response=response, via=via, at=1, **fields)


def test_an_accepted_outcome_is_a_result_with_plain_answers() -> None:
    result = call_tool_result(
        outcome(
            ResponseKind.ACCEPT,
            Provenance.PERSON,
            by=Author(id="u", name="Ana"),
            answers={
                "name": Submitted(value=TextValue(value="Oslo")),
                "size": Submitted(value=NumberValue(value=3.0)),
                "region": Submitted(value=SelectedValue(value="eu", freeform_values=("near me",))),
            },
        )
    )
    assert result.structured_content == {
        "response": "accept",
        "via": "person",
        "by": {"id": "u", "name": "Ana"},
        "answers": {"name": "Oslo", "size": 3, "region": ["eu", "near me"]},
    }
    assert result.content[0].text == (
        "Ana answered “A few things”. Name?: Oslo; Size?: 3; Region?: Europe, near me"
    )
    assert result.is_error is None


@pytest.mark.proves("design.provenance.timeout")
def test_a_timeout_is_told_as_such_and_a_decline_is_no_error() -> None:
    timed_out = call_tool_result(outcome(ResponseKind.CANCEL, Provenance.TIMEOUT))
    assert timed_out.structured_content == {"response": "cancel", "via": "timeout"}
    assert timed_out.content[0].text == "“A few things” timed out."
    declined = call_tool_result(
        outcome(ResponseKind.DECLINE, Provenance.PERSON, by=Author(id="u-bo"))
    )
    assert declined.content[0].text == "u-bo declined “A few things”."
    assert declined.is_error is None


@pytest.mark.proves("design.provenance.policy", "design.provenance.default")
def test_policies_and_defaults_are_not_people() -> None:
    skipped = {"name": Skipped(), "unknown": Skipped()}
    by_policy = outcome(ResponseKind.ACCEPT, Provenance.POLICY, by=Author(id="ci"), answers=skipped)
    assert call_tool_result(by_policy).content[0].text == (
        "ci (a policy) answered “A few things”. Name?: skipped; Region?: Europe (default)"
    )
    by_default = outcome(ResponseKind.ACCEPT, Provenance.DEFAULT)
    assert call_tool_result(by_default).content[0].text == (
        "“A few things” got its defaults: nobody answered in time. Region?: Europe (default)"
    )
    nobody = outcome(ResponseKind.CANCEL, Provenance.PERSON)
    assert call_tool_result(nobody).content[0].text == "Someone cancelled “A few things”."
