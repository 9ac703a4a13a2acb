"""Every setting as an option of a command: named, explained and typed as the setting is."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from session_server.schemas.errors import SessionServerError
from session_server.settings import CONFIG_FILE, Settings, load_settings

CONFIG_HELP = f"TOML file with settings; {CONFIG_FILE} in the working folder if there is one."


def with_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """The command with `--config` and all settings in place of its parameter."""

    @wraps(command)
    def runner(*, config: Path | None, **flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value not in (None, [], ())}
        try:
            command(load_settings(given, config))
        except SessionServerError as error:
            # The mapping loads the client, which a server that starts does without.
            from session_server.cli.error_mapping import cli_error  # noqa: PLC0415
            from session_server.cli.output import print_error  # noqa: PLC0415

            failure = cli_error(error)
            print_error(failure, as_json=False)
            raise typer.Exit(failure.exit_code) from None

    option = typer.Option("--config", help=CONFIG_HELP, dir_okay=False)
    settings = {name: _option(name, field) for name, field in Settings.model_fields.items()}
    annotations: dict[str, Any] = {"config": Annotated[Path | None, option], **settings}
    runner.__annotations__ = annotations
    runner.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in annotations.items()
        ]
    )
    return runner


ConfigOption = Annotated[
    Path | None, typer.Option(help="TOML file with the settings of `serve`.", dir_okay=False)
]
StoreOption = Annotated[
    str | None, typer.Option(help="The store of the host, as `serve --store` names it.")
]
DataDirOption = Annotated[
    Path | None, typer.Option(help="The data folder of the host, as with `serve --data-dir`.")
]

McpConfigOption = Annotated[
    Path | None,
    typer.Option(help="The mcp.json of the host, as with `serve --mcp-config`.", dir_okay=False),
]


def settings_of(config: Path | None, store: str | None, data_dir: Path | None) -> Settings:
    """The settings that a host would have here, for commands that look at its files."""
    return load_settings({"store": store, "data_dir": data_dir}, config)


def named_store(settings: Settings) -> str:
    return settings.store or f"sqlite:///{settings.data_dir.absolute() / 'sessions.db'}"


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(name: str, field: FieldInfo) -> Any:
    """Options that are not given are `None`; their defaults are only shown."""
    shown = "" if field.default in (None, False, ()) else f" By default {field.default}."
    help_text = f"{field.description}{shown}"
    return Annotated[_typed(field), typer.Option(flag_of(name), help=help_text)]


def _typed(field: FieldInfo) -> Any:
    """The type for typer; the settings check the rest."""
    annotation: Any = field.annotation
    if get_origin(annotation) is Literal:
        return annotation | None
    kinds = {get_origin(kind) or kind for kind in (annotation, *get_args(annotation))}
    for kind in (bool, int, float, Path):
        if kind in kinds:
            return kind | None
    return list[str] | None if tuple in kinds else str | None
