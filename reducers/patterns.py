"""Patterns from strangers, matched in linear time by RE2.

A pattern that RE2 cannot run (look-around, back-references, too large) is a hint for people only.
"""

from functools import lru_cache
from typing import Any

import re2

from ..schemas.limits import PATTERN_CHARS


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text, as JSON Schema has it."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    if len(pattern) > PATTERN_CHARS:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
