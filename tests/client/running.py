"""Asynchronous tests, each in an event loop of its own and within a bound."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

BOUND = 60.0
PATIENCE = 30.0
"""How long one thing may take that should happen at once."""

P = ParamSpec("P")


def run(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def runner(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), BOUND))

    return runner
