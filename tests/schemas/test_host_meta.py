"""One table says which keys of `_meta` are the host's; it leaves no key out."""

import msgspec
import pytest

from session_server.schemas.ahp.envelopes import EnvelopeMeta
from session_server.schemas.ahp.questions import AnswerMeta, QuestionMeta, RequestMeta
from session_server.schemas.ahp.session import SummaryMeta
from session_server.schemas.principals import ASKERS, HOST_KEYS

SHAPES: dict[str, type[msgspec.Struct]] = {
    "summary": SummaryMeta,
    "request": RequestMeta,
    "question": QuestionMeta,
    "answer": AnswerMeta,
    "envelope": EnvelopeMeta,
}


@pytest.mark.proves("design.wire.reserved-meta")
def test_every_key_of_a_meta_is_the_hosts_or_the_askers() -> None:
    for place, shape in SHAPES.items():
        keys = {field.encode_name for field in msgspec.structs.fields(shape)}
        host, asker = HOST_KEYS[place], ASKERS.get(place, frozenset())
        assert host | asker == keys
        assert not host & asker
    assert set(HOST_KEYS) == {*SHAPES, "session"}
