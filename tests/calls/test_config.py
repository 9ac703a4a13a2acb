"""`mcp.json` as people write it, and what is reported when it cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.pretty import pretty_repr

from session_server.mcp_client.config import PROCESSES, Loaded, ServerConfig, load_servers
from session_server.schemas.errors import ConfigError
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import Root

ENVIRONMENT = {"TOKEN": "s3cret", "HOME": "/home/ana"}


def read(folder: Path, content: Any, file: str = "mcp.json") -> Loaded:
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_servers(path, ENVIRONMENT)


def loaded(folder: Path, **servers: Any) -> dict[str, ServerConfig]:
    return read(folder, {"mcpServers": servers}).servers


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
    assert (files.answers, files.max_rounds, files.most_connections) == (
        "session",
        ROUNDS_PER_CALL,
        PROCESSES,
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


PROBLEMS = [
    ({}, "it needs either a `command` or a `url`"),
    ("npx", "it needs either a `command` or a `url`"),
    ({"command": "x", "url": "https://x.example"}, "it needs either a `command` or a `url`"),
    ({"command": "x", "args": ["${NOWHERE}"]}, "it uses ${NOWHERE}, which is not set"),
    (
        {"command": "x", "env": {"K": "${input:key}"}},
        "it uses ${input:key}, which this host cannot",
    ),
    ({"url": "https://x.example", "type": "sse"}, "its transport is SSE"),
    ({"url": "https://x.example", "type": "pigeon"}, "its `type` pigeon is unknown"),
    ({"url": "ftp://x.example"}, "begins with https:// or http://"),
    ({"command": 5}, "Expected `str | null`, got `int` - at `command`"),
    ({"command": ["s3cret", 5]}, "Expected `str`, got `int` - at `args[0]`"),
    ({"command": "x", "envFile": "nowhere.env"}, "nowhere.env cannot be read"),
    ({"command": "x", "connections": 0}, "must be more than 0"),
    ({"command": "x", "answerWithin": 0}, "`answerWithin` is a number of seconds"),
    ({"command": "x", "answers": "nobody"}, "answers"),
]


@pytest.mark.parametrize(("server", "reason"), PROBLEMS)
def test_a_bad_entry_says_why_without_values_and_stops_no_others(
    tmp_path: Path, server: Any, reason: str
) -> None:
    found = read(tmp_path, {"mcpServers": {"odd": server, "good": {"command": "x"}}})
    assert reason in (found.servers["odd"].problem or "")
    assert found.servers["good"].problem is None
    (warning,) = found.warnings
    assert f"the server 'odd' cannot be used: {found.servers['odd'].problem}" in warning
    assert "s3cret" not in warning


@pytest.mark.parametrize(("server", "reason"), PROBLEMS)
def test_what_is_wrong_with_a_disabled_entry_does_not_matter(
    tmp_path: Path, server: Any, reason: str
) -> None:
    del reason
    if isinstance(server, dict):
        for off in ({"disabled": True}, {"enabled": False}):
            found = read(tmp_path, {"mcpServers": {"odd": {**server, **off}}})
            assert found.servers["odd"].disabled
            assert found.warnings == ()


@pytest.mark.parametrize(
    "content",
    [
        {"mcpServers": {"x": {"command": "y"}}},
        {"servers": {"x": {"type": "stdio", "command": "y"}}, "inputs": []},
        {"context_servers": {"x": {"command": {"path": "y", "args": []}}}},
        {"mcp": {"servers": {"x": {"command": "y"}}}},
        {"mcp": {"x": {"type": "local", "command": ["y"], "enabled": True}}},
        '{"mcpServers": {"x": {"command": "y", }, /* all */ }, // "of them"\n}',
    ],
)
def test_files_of_other_programs_are_taken_as_they_are(tmp_path: Path, content: Any) -> None:
    found = read(tmp_path, content)
    assert found.warnings == ()
    assert found.servers == {"x": ServerConfig(name="x", command="y")}


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://x.example/mcp", "transport": "streamable-http"},
        {"serverUrl": "https://x.example/mcp"},
        {"httpUrl": "https://x.example/mcp", "type": "streamableHttp"},
        {"type": "remote", "url": "https://x.example/mcp"},
    ],
)
def test_an_address_has_many_names(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert loaded(tmp_path, x=entry)["x"].url == "https://x.example/mcp"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("privateArgument", "did you mean `privateArguments`?"),
        ("answer_within", "did you mean `answerWithin`?"),
        ("Disabled", "did you mean `disabled`?"),
        ("autoApprove", "and ignored"),
    ],
)
def test_a_key_that_is_not_understood_is_reported(tmp_path: Path, key: str, reason: str) -> None:
    found = read(tmp_path, {"mcpServers": {"x": {"command": "y", key: 1}}})
    assert [f"`{key}` is not understood" in line and reason in line for line in found.warnings] == [
        True
    ]
    assert found.servers["x"].problem is None


def test_a_file_without_servers_is_reported(tmp_path: Path) -> None:
    found = read(tmp_path, {"mcpServer": {"x": {"command": "y"}}})
    assert found.servers == {}
    first, second = found.warnings
    assert "`mcpServer` is not understood; did you mean `mcpServers`?" in first
    assert "no MCP server is configured" in second


def test_names_are_made_to_fit_into_an_address(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"mcpServers": {name: {"command": "x"} for name in ("my server", "my/server", "✨")}},
    )
    assert list(found.servers) == ["my-server"]
    renamed, second, empty = found.warnings
    assert "the server 'my server' is called 'my-server' here, as in /mcp/my-server" in renamed
    assert "'my/server' would be a second 'my-server' and is left out" in second
    assert "'✨' has a name without letters" in empty


def test_variables_come_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "dev.env").write_text("# of mine\nexport A=1\nB = 'two words'\n\nC=no\n")
    entry = {"command": "x", "envFile": "${workspaceFolder}/dev.env", "env": {"C": "yes"}}
    found = read(tmp_path, {"servers": {"x": entry}}, ".vscode/mcp.json")
    assert found.servers["x"].env == {"A": "1", "B": "two words", "C": "yes"}


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_servers(tmp_path / "nowhere.json")
    for content in ("{]", '{"mcpServers": []}', "[]"):
        with pytest.raises(ConfigError, match="is not a configuration of MCP servers"):
            read(tmp_path, content)
    (tmp_path / "mcp.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigError, match="is not text in UTF-8"):
        load_servers(tmp_path / "mcp.json")


def test_the_revision_to_speak_can_be_chosen(tmp_path: Path) -> None:
    servers, warnings = read(
        tmp_path,
        {
            "mcpServers": {
                "plain": {"command": "x"},
                "old": {"command": "x", "protocol": "2025-11-25", "connections": 3},
                "web": {"url": "https://example.com/mcp", "protocol": "2026-07-28"},
                "typo": {"command": "x", "protocol": "2025"},
            }
        },
    )
    assert [one.protocol for one in servers.values()][:3] == ["auto", "2025-11-25", "2026-07-28"]
    assert [one.most_connections for one in servers.values()][:3] == [1, 3, 4]
    assert servers["typo"].problem == ("its `protocol` must be auto, 2026-07-28 or 2025-11-25")
    assert [warning.endswith(f"{servers['typo'].problem}.") for warning in warnings] == [True]
