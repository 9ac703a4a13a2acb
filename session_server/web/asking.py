"""From the body of a new request to the question that is asked."""

from session_server.reducers.formats import is_web_address
from session_server.reducers.forms import questions_of
from session_server.reducers.input_rules import NOT_A_WEB_ADDRESS
from session_server.schemas.http import NewRequest
from session_server.schemas.mcp import Unshowable
from session_server.schemas.questions import InputRequest, OnExpiry, Question, RequestMeta
from session_server.schemas.refusals import RefusalCode
from session_server.web.problems import ProblemError


def asked(wanted: NewRequest, request_id: str, now: int) -> InputRequest:
    if wanted.url is not None and not is_web_address(wanted.url):
        raise _bad_form(NOT_A_WEB_ADDRESS, "$.url")
    questions = _questions(wanted)
    if not (questions or wanted.url or wanted.message):
        raise _bad_form("Ask something: a message, questions, a requestedSchema or a url.")
    return InputRequest(
        id=request_id,
        message=wanted.message,
        url=wanted.url,
        questions=questions or None,
        meta=_meta(wanted, now),
    )


def _questions(wanted: NewRequest) -> tuple[Question, ...]:
    if wanted.requested_schema is None:
        return wanted.questions or ()
    if wanted.questions is not None:
        raise _bad_form("Send `questions` or a `requestedSchema`, not both.", "$.questions")
    questions = questions_of(wanted.requested_schema)
    if isinstance(questions, Unshowable):
        words = f"This form cannot be asked: {questions.reason}."
        raise _bad_form(words, "$.requestedSchema")
    return questions


def _meta(wanted: NewRequest, now: int) -> RequestMeta:
    """The deadline and the lease."""
    if wanted.expires_at is not None and wanted.expires_in is not None:
        raise _bad_form("Send `expiresAt` or `expiresIn`, not both.", "$.expiresIn")
    if wanted.expires_at is None and wanted.expires_in is None:
        if wanted.on_expiry is not None:
            words = "`onExpiry` needs a deadline: `expiresAt` or `expiresIn`."
            raise _bad_form(words, "$.onExpiry")
        return RequestMeta(lease=wanted.lease)
    at = wanted.expires_at
    if wanted.expires_in is not None:
        at = now + round(wanted.expires_in * 1000)
    on_expiry = wanted.on_expiry or OnExpiry.CANCEL
    return RequestMeta(expires_at=at, on_expiry=on_expiry, lease=wanted.lease)


def _bad_form(words: str, path: str = "$") -> ProblemError:
    return ProblemError(422, RefusalCode.BAD_FORM, words, path=path)
