"""The settings of a host: from flags, the environment, a TOML file or defaults, in that order.

One field is one setting; its description is the help of its flag and its row in the docs.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from session_server.schemas import limits
from session_server.schemas.errors import ConfigError

ENVIRONMENT_PREFIX = "SESSION_SERVER_"
CONFIG_FILE = Path("session-server.toml")
"""Read if it exists; a file that is named with `--config` must exist."""


class SettingsError(ConfigError):
    """A setting is not valid. The message never shows a value, which may be a secret."""

    code = "badSettings"


def _split(value: object) -> object:
    """In an environment variable a list is written with commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Number = Annotated[int, Field(ge=0)]


class Settings(BaseSettings):
    """`Settings(...)` reads nothing from outside: other fields have their defaults."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8737, ge=0, le=65_535, description="Port to listen on; 0 picks one.")
    store: str | None = Field(
        default=None,
        description="Where sessions are stored: `memory:`, `sqlite:///path`,"
        " `postgresql://user@host/database?schema=name` or `nats://host?stream=name`;"
        " else in data_dir.",
    )
    data_dir: Path = Field(
        default=Path("session-server-data"),
        description="Folder for the database, unless store is set, and for the signing key.",
    )
    sync: Literal["full", "normal"] = Field(
        default="full",
        description="What stored data survives: `full`: a power cut; `normal`: a killed process.",
    )
    store_seconds: float = Field(
        default=limits.STORE_SECONDS,
        gt=0,
        description="Seconds that a write waits for a disk that does not answer; then it fails.",
    )
    shared: bool = Field(
        default=False,
        description="Other nodes use the same store at the same time: PostgreSQL or NATS.",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        description="Seconds that a stop waits while `/readyz` says so and connections end.",
    )
    node_lease_seconds: float = Field(
        default=limits.NODE_LEASE_SECONDS,
        gt=0,
        description="Seconds after which other nodes take over the work of one that is silent.",
    )
    accept_data_loss: bool = Field(
        default=False,
        description="Start although the database lacks entries that it had before; they stay lost.",
    )
    demo: bool = Field(
        default=False, description="Start with two demo sessions whose questions are open."
    )
    log_level: Literal["error", "warning", "info", "debug"] = Field(
        default="warning",
        description="How much is logged; `info` includes every request. Tokens never are.",
    )

    mcp_config: Path | None = Field(
        default=None,
        description="`mcp.json` with the MCP servers to call, and to offer at /mcp/NAME.",
    )
    mcp_hold_seconds: float = Field(
        default=50.0,
        gt=0,
        description="Seconds that a 2026 MCP client's request waits for people; then it retries.",
    )
    mcp_lease_seconds: float = Field(
        default=limits.LEASE_SECONDS,
        gt=0,
        le=limits.LEASE_LIMIT_SECONDS,
        description="Seconds that an MCP client may be away before its questions are marked.",
    )

    connection_token: SecretStr | None = Field(
        default=None,
        description="Anyone with this token is an owner; `generate` prints a new one once.",
    )
    connection_token_file: Path | None = Field(
        default=None,
        description="File with the connection token; created, readable by you alone, if missing.",
    )
    without_connection_token: bool = Field(
        default=False,
        description="Everyone who can reach the address is an owner, without a token.",
    )
    secret: SecretStr | None = Field(
        default=None,
        description="Key that signs tokens, instead of `secret.key` in the data folder.",
    )
    allowed_origins: Names = Field(
        default=(),
        description="Other origins whose pages may use this host, such as `https://my.app`; `*`"
        " needs a connection token.",
    )
    allowed_hosts: Names = Field(
        default=(),
        description="Other names by which a host on loopback may be called, as behind a proxy; they"
        " need a connection token.",
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+(/[^?#]*)?$",
        description="Where people reach this host, for share links; its name is an allowed host. It"
        " needs a connection token.",
    )

    actions_per_second: Number = Field(
        default=limits.ACTIONS_PER_SECOND,
        description="Messages a second that one principal may send, over all its connections and"
        " HTTP requests; large ones count more than once. 0 means no limit.",
    )
    connections_per_principal: Number = Field(
        default=limits.CONNECTIONS_PER_PRINCIPAL,
        description="Connections that one principal may have at a time; 0 means no limit.",
    )
    max_sessions: Number = Field(
        default=limits.SESSIONS_PER_HOST,
        description="Sessions that the host holds; 0 means no limit.",
    )
    max_session_bytes: Number = Field(
        default=limits.SESSION_BYTES,
        description="Bytes of one session's state as JSON; 0 means no limit.",
    )
    max_state_bytes: Number = Field(
        default=limits.STATE_BYTES_PER_HOST,
        description="Bytes of all sessions' states together; 0 means no limit.",
    )
    max_loaded_bytes: Number = Field(
        default=limits.LOADED_BYTES,
        description="Bytes of sessions' states in memory; beyond that, idle sessions leave it"
        " early and are read again when they are needed. 0 means no limit.",
    )
    idle_seconds: float = Field(
        default=limits.IDLE_SECONDS,
        ge=0,
        description="Seconds after which a session that nobody looks at leaves memory, if nothing"
        " in it is open; 0 means never.",
    )


def load_settings(flags: Mapping[str, Any] | None = None, config: Path | None = None) -> Settings:
    """The settings from all sources. A flag that is `None` was not given."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    if config is not None and not config.is_file():
        raise SettingsError(f"The settings file {config} does not exist.")

    try:
        file = TomlConfigSettingsSource(Settings, toml_file=config or CONFIG_FILE)()
        return Settings(**{**file, **EnvSettingsSource(Settings)(), **given})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{config or CONFIG_FILE} is not TOML: {error}.") from None
    except ValidationError as error:
        raise SettingsError("\n".join(_explained(fault) for fault in error.errors())) from None


def _explained(fault: Any) -> str:
    """The message of pydantic, without the value."""
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{name!r} is not a setting."
    return f"The setting {name}: {fault['msg']}."
