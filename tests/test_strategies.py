"""The strategies keep their promises, or the properties that stand on them prove nothing."""

from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.forms.answer_checks import check_answer, check_value
from session_server.schemas.ahp.questions import InputRequest
from tests.strategies import fitting_answers, fitting_values, input_requests, questions


@given(data=st.data())
def test_fitting_values_may_be_submitted(data: st.DataObject) -> None:
    question = data.draw(questions())
    value = data.draw(fitting_values(question))
    assert check_value(question, value) is None


@given(data=st.data())
def test_fitting_answers_are_accepted(data: st.DataObject) -> None:
    question = data.draw(questions())
    assert check_answer(question, data.draw(fitting_answers(question))) is None


@given(request_=input_requests())
def test_requests_hold_fitting_answers_to_their_own_questions(request_: InputRequest) -> None:
    asked = {question.id: question for question in request_.questions or ()}
    assert len(asked) == len(request_.questions or ())
    for identity, answer in (request_.answers or {}).items():
        assert check_answer(asked[identity], answer) is None
