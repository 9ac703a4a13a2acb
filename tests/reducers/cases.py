"""Loads the corpus of reducer cases; `tests/corpus/README.md` explains its format."""

import copy
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from session_server.schemas.codec import encode

CORPUS = Path(__file__).resolve().parent.parent / "corpus"

Json = dict[str, Any]


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    reducer: Literal["session", "root", "chat"]
    on: str
    do: Annotated[tuple[Json, ...], msgspec.Meta(min_length=1)]
    gives: Json
    changes: Json = msgspec.field(default_factory=dict, name="with")
    at: int = 9999


class CaseFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    about: str
    bases: dict[str, Json]
    cases: tuple[Case, ...]


class LoadedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case with its states spelled out, as plain JSON."""

    topic: str
    case: Case
    start: Json
    expected: Json

    @property
    def is_change(self) -> bool:
        return bool(self.case.gives)

    def __str__(self) -> str:
        return f"{self.topic}: {self.case.name}"


def assigned(state: Json, changes: Json) -> Json:
    """A copy of the state with each dotted path set to its value; `None` removes a key."""
    result = copy.deepcopy(state)
    for path, value in changes.items():
        *parents, last = path.split(".")
        target: Any = result
        for name in parents:
            target = target[int(name)] if isinstance(target, list) else target[name]
        _assign(target, last, copy.deepcopy(value))
    return result


def _assign(target: Any, name: str, value: Any) -> None:
    if isinstance(target, list):
        if value is None:
            raise ValueError("an element cannot be removed; assign the whole list")
        target[int(name) : int(name) + 1] = [value]
        if target[int(name)] is not value:
            raise IndexError(name)
    elif value is None:
        del target[name]
    else:
        target[name] = value


def loaded(topic: str, text: bytes) -> list[LoadedCase]:
    file = msgspec.json.decode(text, type=CaseFile)
    cases = []
    for case in file.cases:
        start = assigned(file.bases[case.on], case.changes)
        expected = assigned(start, case.gives)
        cases.append(LoadedCase(topic=topic, case=case, start=start, expected=expected))
    return cases


def all_cases(folder: str = "reducers") -> list[LoadedCase]:
    paths = sorted((CORPUS / folder).glob("*.json"))
    return [case for path in paths for case in loaded(path.stem, path.read_bytes())]


def plain(state: Any) -> str:
    """The canonical text of a state as it is sent."""
    return canonical(msgspec.json.decode(encode(state)))


def canonical(value: Any) -> str:
    """One text for equal JSON: unlike `==` on values, it tells `1`, `1.0` and `true` apart."""
    return json.dumps(value, sort_keys=True)
