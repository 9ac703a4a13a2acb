"""Live agent sessions that people, devices and programs watch and answer together.

The public interface is `__all__` here and in `session_server.client`, see
docs/embedding.md. Everything else is internal. Names are loaded when they are first used, so that
the client and the command line load nothing of the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from session_server.agents.interface import Agent, CallFailedError, TurnContext
    from session_server.agents.turn_runner import installed_agents
    from session_server.app import create_app
    from session_server.client import connect
    from session_server.reducers.forms.review import plain_answers
    from session_server.schemas.ahp.questions import (
        BooleanQuestion,
        IntegerQuestion,
        MultiSelectQuestion,
        NumberQuestion,
        Option,
        Question,
        ResponseKind,
        SingleSelectQuestion,
        TextQuestion,
    )
    from session_server.schemas.ahp.session import AgentInfo
    from session_server.schemas.ahp.tool_calls import ToolResult
    from session_server.schemas.record import Outcome
    from session_server.settings import Settings, SettingsError

__version__ = "0.1.0"

__all__ = [
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
]

_MODULES = {
    "session_server.agents.interface": ("Agent", "CallFailedError", "TurnContext"),
    "session_server.agents.turn_runner": ("installed_agents",),
    "session_server.app": ("create_app",),
    "session_server.client": ("connect",),
    "session_server.reducers.forms.review": ("plain_answers",),
    "session_server.schemas.record": ("Outcome",),
    "session_server.schemas.ahp.questions": (
        "BooleanQuestion",
        "IntegerQuestion",
        "MultiSelectQuestion",
        "NumberQuestion",
        "Option",
        "Question",
        "ResponseKind",
        "SingleSelectQuestion",
        "TextQuestion",
    ),
    "session_server.schemas.ahp.session": ("AgentInfo",),
    "session_server.schemas.ahp.tool_calls": ("ToolResult",),
    "session_server.settings": ("Settings", "SettingsError"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
