"""Files that people write by hand, in JSON or YAML."""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from session_server.cli.trouble import UsageTrouble

STDIN = Path("-")
FILE_BYTES = 8 * 1024 * 1024


class Loader(yaml.SafeLoader):
    """Dates stay the text that they are written as: that is what answers are."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        sign: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_document(path: Path) -> Any:
    """`-` is standard input.

    JSON is tried first: YAML reads most of it, but not the surrogate pairs that JSON writers use
    for characters such as emoji. A lone half of a pair is not text and is refused.
    """
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = _yaml(path, text)
    if _has_lone_surrogate(document):
        raise UsageTrouble(f"{path} contains half of a surrogate pair, which is not a character.")
    return document


def _yaml(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageTrouble(f"{path} is neither JSON nor YAML: {error}") from None


def _has_lone_surrogate(document: Any) -> bool:
    match document:
        case str():
            return any("\ud800" <= character <= "\udfff" for character in document)
        case list():
            return any(map(_has_lone_surrogate, document))
        case dict():
            return any(map(_has_lone_surrogate, (*document.keys(), *document.values())))
        case _:
            return False


def _text(path: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        if len(raw) > FILE_BYTES:
            raise UsageTrouble(f"{path} has more than {FILE_BYTES:,} bytes.")
        return raw.decode()
    except OSError as error:
        raise UsageTrouble(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageTrouble(f"{path} is not text in UTF-8.") from None
