"""Coroutines as tests, each in a loop of its own and within a bound."""

import asyncio
import inspect

import pytest

from tests.log.logs import BACKENDS, Backend

BOUND = 300


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), BOUND))
    return True


@pytest.fixture(params=BACKENDS, ids=[backend.__name__ for backend in BACKENDS])
def backend(request, tmp_path) -> Backend:
    return request.param(tmp_path)
