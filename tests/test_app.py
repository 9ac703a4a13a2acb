"""An application that cannot start leaves nothing running."""

import sys
from pathlib import Path

import pytest

from session_server.app import create_app
from session_server.http.dependencies import running
from session_server.schemas.errors import UnreadableTokensError
from session_server.schemas.log_entries import TokenIssued
from session_server.settings import Settings
from tests.identity.test_tokens import token
from tests.log.logs import damage_entry
from tests.waiting import until


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


async def test_an_application_that_cannot_read_its_log_closes_it(tmp_path: Path) -> None:
    path, settings = tmp_path / "log.db", Settings(data_dir=tmp_path)
    app = create_app(f"sqlite:///{path}", settings=settings)
    async with app.router.lifespan_context(app):
        services = running(app)
        assert services is not None
        tokens = services.host.tokens
        services.host.write(tokens, lambda *_: (TokenIssued(token=token(id="t")),))
        await until(lambda: tokens.committed.tokens)
    damage_entry(path, tokens.last_seq)
    for _ in range(2):  # if it were still open, the second would find it in use
        with pytest.raises(UnreadableTokensError):
            async with app.router.lifespan_context(app):
                raise AssertionError("it has started")
