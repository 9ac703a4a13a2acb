"""What `ask` asks: from a message, from questions in one line each, or from a file."""

from pathlib import Path
from typing import Any

import msgspec

from session_server.cli.files import read_document
from session_server.cli.questions import parsed_questions
from session_server.cli.trouble import UsageTrouble
from session_server.schemas.http import NewRequest
from session_server.schemas.limits import TITLE_CHARS


def wanted_request(
    message: str | None, lines: list[str], file: Path | None, link: str | None
) -> NewRequest:
    if lines and file is not None:
        raise UsageTrouble("Give --question or --file, not both.")
    fields: dict[str, Any] = {} if file is None else _from_file(file)
    if message is not None:
        fields["message"] = message
    if link is not None:
        fields["url"] = link
    try:
        wanted = msgspec.convert(fields, NewRequest)
    except msgspec.ValidationError as error:
        raise UsageTrouble(f"{file} cannot be asked: {error}") from None
    if lines:
        wanted = msgspec.structs.replace(wanted, questions=parsed_questions(lines))
    if not (
        (wanted.message or "").strip() or wanted.questions or wanted.requested_schema or wanted.url
    ):
        advice = 'As in: session-server ask "Deploy?" -q "env:select:Where?=staging|prod*"'
        raise UsageTrouble("There is nothing to ask.", advice)
    return wanted


def title_of(wanted: NewRequest) -> str:
    first = wanted.questions[0].message if wanted.questions else None
    return (wanted.message or first or "A question")[:TITLE_CHARS]


def _from_file(path: Path) -> dict[str, Any]:
    """A list of questions, a schema, or an object with one of them and a message."""
    match read_document(path):
        case list() as questions:
            return {"questions": questions}
        case {"properties": dict()} as schema:
            return {"requestedSchema": schema}
        case dict() as fields:
            return fields
        case _:
            words = f"{path} holds neither a list of questions nor an object."
            raise UsageTrouble(words)
