"""An application that cannot start leaves nothing running."""

import sys
from pathlib import Path

import pytest

from session_server.app import create_app
from session_server.http.dependencies import running
from session_server.settings import Settings


async def test_an_application_that_fails_to_start_closes_its_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, settings = f"sqlite:///{tmp_path}/log.db", Settings(data_dir=tmp_path)
    app = create_app(store, demo=True, settings=settings)
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, "session_server.gateway.endpoints", None)
        with pytest.raises(ImportError):
            async with app.router.lifespan_context(app):
                raise AssertionError("it has started")
    assert running(app) is None
    async with app.router.lifespan_context(app):  # or the log would still be open
        assert running(app) is not None
