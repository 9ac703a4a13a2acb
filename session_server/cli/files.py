"""Files that people write by hand: YAML, of which JSON is a part."""

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
    """`-` is standard input."""
    try:
        return yaml.load(_text(path), Loader)  # noqa: S506 - a safe one
    except yaml.YAMLError as error:
        raise UsageTrouble(f"{path} is neither YAML nor JSON: {error}") from None


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
