"""Settings: where they come from, in which order, and that none is left out of the docs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs import build
from session_server.cli.program import app
from session_server.cli.setting_options import flag_of
from session_server.settings import CONFIG_FILE, Settings, SettingsError, load_settings

CANARY = "canary-0123456789abcdef"

# One value per setting that is not its default, as text, and what it becomes.
VALUES: dict[str, tuple[str, object]] = {
    "host": ("127.0.0.2", "127.0.0.2"),
    "port": ("99", 99),
    "store": ("memory:", "memory:"),
    "data_dir": ("elsewhere", Path("elsewhere")),
    "sync": ("normal", "normal"),
    "store_seconds": ("2.5", 2.5),
    "drain_seconds": ("3", 3.0),
    "node_lease_seconds": ("20", 20.0),
    "shared": ("true", True),
    "accept_data_loss": ("true", True),
    "demo": ("true", True),
    "log_level": ("debug", "debug"),
    "mcp_config": ("mcp.json", Path("mcp.json")),
    "mcp_hold_seconds": ("7.5", 7.5),
    "mcp_lease_seconds": ("60", 60.0),
    "connection_token": (CANARY, CANARY),
    "connection_token_file": ("token", Path("token")),
    "without_connection_token": ("true", True),
    "secret": (CANARY, CANARY),
    "allowed_origins": (
        "https://a.example, https://b.example",
        ("https://a.example", "https://b.example"),
    ),
    "allowed_hosts": ("a.example", ("a.example",)),
    "public_url": ("https://a.example/x", "https://a.example/x"),
    "actions_per_second": ("7", 7),
    "connections_per_principal": ("7", 7),
    "max_sessions": ("7", 7),
    "max_session_bytes": ("7", 7),
    "max_state_bytes": ("7", 7),
    "max_loaded_bytes": ("7", 7),
    "idle_seconds": ("1.5", 1.5),
}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plain(settings: Settings, name: str) -> object:
    value = getattr(settings, name)
    return value.get_secret_value() if hasattr(value, "get_secret_value") else value


def as_toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case tuple():
            return "[" + ", ".join(f'"{item}"' for item in value) + "]"
        case _:
            return f'"{value}"'


def from_flag(name: str, text: str, value: object, _: pytest.MonkeyPatch) -> Settings:
    return load_settings({name: value})


def from_environment(name: str, text: str, _: object, patch: pytest.MonkeyPatch) -> Settings:
    patch.setenv(f"SESSION_SERVER_{name.upper()}", text)
    return load_settings()


def from_file(name: str, _: str, value: object, __: pytest.MonkeyPatch) -> Settings:
    CONFIG_FILE.write_text(f"{name} = {as_toml(value)}\n")
    return load_settings()


def test_every_setting_is_tried_here() -> None:
    assert set(VALUES) == set(Settings.model_fields)


@pytest.mark.parametrize("source", [from_flag, from_environment, from_file])
@pytest.mark.parametrize("name", VALUES)
def test_every_setting_can_be_set_everywhere(
    name: str, source: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, value = VALUES[name]
    assert plain(Settings(), name) != value
    settings = source(name, text, value, monkeypatch)
    assert plain(settings, name) == value
    others = {other for other in VALUES if plain(settings, other) != plain(Settings(), other)}
    assert others == {name}


def test_a_flag_counts_before_the_environment_and_that_before_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    CONFIG_FILE.write_text("port = 1\nmax_sessions = 1\nactions_per_second = 1\n")
    monkeypatch.setenv("SESSION_SERVER_PORT", "2")
    monkeypatch.setenv("SESSION_SERVER_MAX_SESSIONS", "2")
    settings = load_settings({"port": 3, "max_sessions": None})
    found = (settings.port, settings.max_sessions, settings.actions_per_second)
    assert found == (3, 2, 1)


def test_a_named_file_is_read_instead_of_the_usual_one() -> None:
    CONFIG_FILE.write_text("port = 1\n")
    Path("other.toml").write_text("max_sessions = 2\n")
    settings = load_settings(config=Path("other.toml"))
    assert (settings.port, settings.max_sessions) == (Settings().port, 2)


def test_settings_made_directly_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    CONFIG_FILE.write_text("port = 1\n")
    monkeypatch.setenv("SESSION_SERVER_HOST", "0.0.0.0")
    assert (Settings().port, Settings().host) == (8737, "127.0.0.1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("pork = 1", "'pork' is not a setting."),
        ("port = 70000", "The setting port"),
        ("port = 'x", "is not TOML"),
        (f"connection_token = ['{CANARY}']", "The setting connection_token"),
    ],
)
def test_an_invalid_setting_is_explained_without_its_value(content: str, message: str) -> None:
    CONFIG_FILE.write_text(content)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert message in str(refused.value)
    assert CANARY not in str(refused.value)


def test_a_missing_config_file_is_reported() -> None:
    with pytest.raises(SettingsError, match=r"settings file missing\.toml does not exist"):
        load_settings(config=Path("missing.toml"))


def test_secrets_are_not_shown_when_settings_are() -> None:
    settings = load_settings({"connection_token": CANARY, "secret": CANARY})
    assert CANARY not in repr(settings) + str(settings)


@pytest.mark.proves("design.names.serve")
def test_every_setting_is_an_option_of_serve() -> None:
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    assert [name for name in ("config", *Settings.model_fields) if flag_of(name) not in shown] == []


def test_serve_says_what_is_wrong_and_leaves_with_2() -> None:
    result = CliRunner().invoke(app, ["serve", "--public-url", "nonsense"])
    assert result.exit_code == 2
    assert "public_url" in result.stderr


def test_every_setting_is_in_the_docs() -> None:
    page = build.settings_page()
    for name, field in Settings.model_fields.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert flag_of(name) in row
        assert f"SESSION_SERVER_{name.upper()}" in row
        assert str(field.description) in row
