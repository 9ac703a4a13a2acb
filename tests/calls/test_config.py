"""`mcp.json` as people write it, and what is said when it cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.pretty import pretty_repr

from session_server.calls.config import CONNECTIONS, ServerConfig, load_servers
from session_server.calls.errors import ConfigError
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import Root

ENVIRONMENT = {"TOKEN": "s3cret", "HOME": "/home/ana"}


def loaded(folder: Path, **servers: Any) -> dict[str, ServerConfig]:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return load_servers(file, ENVIRONMENT)


def test_a_file_as_other_programs_have_it_is_understood(tmp_path: Path) -> None:
    servers = loaded(
        tmp_path,
        files={
            "command": "npx",
            "args": ["-y", "server-files", "${HOME}/work"],
            "env": {"KEY": "${env:TOKEN}", "MODE": "${MODE:-safe}"},
            "cwd": "there",
            "autoApprove": ["read"],
        },
        web={
            "type": "http",
            "url": "https://x.example/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "disabled": True,
        },
    )
    files, web = servers["files"], servers["web"]
    assert files.args == ("-y", "server-files", "/home/ana/work")
    assert files.env == {"KEY": "s3cret", "MODE": "safe"}
    assert files.cwd == str(tmp_path / "there")
    assert web.headers == {"Authorization": "Bearer s3cret"}
    assert web.disabled
    assert (files.answers, files.max_rounds, files.connections) == (
        "session",
        ROUNDS_PER_CALL,
        CONNECTIONS,
    )


def test_keys_of_our_own(tmp_path: Path) -> None:
    (config,) = loaded(
        tmp_path,
        own={
            "url": "http://127.0.0.1:1/mcp",
            "answers": "client",
            "session": "ops",
            "privateArguments": {"deploy": ["token"]},
            "answerWithin": 600,
            "maxRounds": 3,
            "connections": 2,
            "startTimeout": 5,
            "roots": [{"uri": "file:///work"}],
        },
    ).values()
    assert config.private_arguments_of("deploy") == ("token",)
    assert config.private_arguments_of("other") == ()
    assert (config.answer_within, config.max_rounds, config.connections) == (600, 3, 2)
    assert config.roots == (Root(uri="file:///work"),)
    (everywhere,) = loaded(tmp_path, x={"command": "y", "privateArguments": ["token"]}).values()
    assert everywhere.private_arguments_of("any") == ("token",)


def test_a_configuration_never_shows_its_values(tmp_path: Path) -> None:
    (config,) = loaded(tmp_path, x={"command": "y", "env": {"KEY": "${TOKEN}"}}).values()
    assert "s3cret" not in f"{config!r} {config} {pretty_repr(config)} {[config]}"


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({}, "needs either a `command` or a `url`"),
        ({"command": "x", "url": "https://x.example"}, "needs either a `command` or a `url`"),
        ({"command": "x", "args": ["${NOWHERE}"]}, "uses ${NOWHERE}, which is not set"),
        ({"url": "https://x.example", "type": "sse"}, "no sse"),
        ({"url": "ftp://x.example"}, "begins with https:// or http://"),
        ({"command": ["s3cret"]}, "Expected `str | null`, got `array` - at `command`"),
        ({"command": "x", "connections": 0}, "must be more than 0"),
        ({"command": "x", "answerWithin": 0}, "`answerWithin` is a number of seconds"),
        ({"command": "x", "answers": "nobody"}, "answers"),
    ],
)
def test_what_is_wrong_is_said_without_values(
    tmp_path: Path, server: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, odd=server)
    assert words in str(raised.value)
    assert "the server 'odd'" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_names_must_fit_into_an_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a name of letters"):
        loaded(tmp_path, **{"a/b": {"command": "x"}})


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_servers(tmp_path / "nowhere.json")
    file = tmp_path / "mcp.json"
    file.write_text("{]")
    with pytest.raises(ConfigError, match="is not a configuration of MCP servers"):
        load_servers(file)
    file.write_text('{"mcpServers": []}')
    with pytest.raises(ConfigError, match="is not a configuration of MCP servers"):
        load_servers(file)
    file.write_text("{}")
    assert load_servers(file) == {}


def test_a_disabled_server_needs_none_of_its_variables(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer ${NOWHERE}"}
    off = loaded(tmp_path, off={"url": "https://x.example", "headers": headers, "disabled": True})
    assert off["off"].disabled
