"""Every shape there is survives encoding and decoding, and is made the way `Wire` promises."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

from session_server import schemas
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.mcp import AskedOption, AskedQuestion, AskQuestions, NotifyStatus
from session_server.schemas.wire import Wire
from tests.schemas.wire_examples import bare, variants


def subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


for found in pkgutil.iter_modules(schemas.__path__, f"{schemas.__name__}."):
    importlib.import_module(found.name)
SHAPES: list[Any] = sorted(
    {cls for cls in subclasses(Wire) if cls.__module__.startswith(schemas.__name__)},
    key=lambda cls: (cls.__module__, cls.__qualname__),
)


@pytest.mark.proves("design.decode.round-trip")
def test_a_shape_survives_encoding_and_decoding() -> None:
    for cls in SHAPES:
        decode: Decoder[Any] = Decoder(cls)
        for value in (variants(cls)[0], variants(cls)[-1], bare(cls)):
            assert decode(encode(value)) == value
            assert encode(decode(encode(value))) == encode(value)


STRICT = {AskedOption, AskedQuestion, AskQuestions, NotifyStatus}
"""Arguments that a model writes: a misspelt field would be asked as something else."""


def test_shapes_are_frozen_and_tolerate_unknown_fields_unless_a_model_writes_them() -> None:
    configs = {cls: cls.__struct_config__ for cls in SHAPES}
    assert [cls for cls, config in configs.items() if not config.frozen or config.array_like] == []
    assert {cls for cls, config in configs.items() if config.forbid_unknown_fields} == STRICT
