"""The names that programs may import; a change of this list belongs in the changelog."""

import subprocess
import sys

import pytest

import session_server

PUBLIC = {
    "Agent",
    "AgentInfo",
    "BooleanQuestion",
    "CallFailedError",
    "IntegerQuestion",
    "MultiSelectQuestion",
    "NumberQuestion",
    "Option",
    "Outcome",
    "Question",
    "ResponseKind",
    "Settings",
    "SettingsError",
    "SingleSelectQuestion",
    "TextQuestion",
    "ToolResult",
    "TurnContext",
    "connect",
    "create_app",
    "installed_agents",
    "plain_answers",
}


def test_the_public_names_are_these() -> None:
    assert set(session_server.__all__) == PUBLIC
    assert set(dir(session_server)) == {*PUBLIC, "__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_found(name: str) -> None:
    assert getattr(session_server, name) is not None


def test_other_names_are_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Host'"):
        _ = session_server.Host


def test_importing_the_package_loads_no_server() -> None:
    program = "import session_server, sys; session_server.connect; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "session_server.client" in loaded
    assert not {"fastapi", "uvicorn", "mcp", "session_server.host"} & set(loaded)
