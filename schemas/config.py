"""Configuration that a host or a session describes by a schema and holds as values."""

from typing import Literal

from .wire import Extra, Json, Wire

PropertyType = Literal["string", "number", "boolean", "array", "object"]


class ConfigPropertySchema(Wire, frozen=True, kw_only=True):
    type: PropertyType
    title: str
    description: str | None = None
    default: Json = None
    enum: tuple[str, ...] | None = None
    enum_labels: tuple[str, ...] | None = None
    enum_descriptions: tuple[str, ...] | None = None
    read_only: bool | None = None
    items: "ConfigPropertySchema | None" = None
    properties: "dict[str, ConfigPropertySchema] | None" = None
    required: tuple[str, ...] | None = None


class SessionConfigPropertySchema(ConfigPropertySchema, frozen=True, kw_only=True):
    enum_dynamic: bool | None = None
    session_mutable: bool | None = None


class ConfigSchema(Wire, frozen=True, kw_only=True):
    type: Literal["object"]
    properties: dict[str, ConfigPropertySchema]
    required: tuple[str, ...] | None = None


class SessionConfigSchema(Wire, frozen=True, kw_only=True):
    type: Literal["object"]
    properties: dict[str, SessionConfigPropertySchema]
    required: tuple[str, ...] | None = None


class RootConfigState(Wire, frozen=True, kw_only=True):
    schema: ConfigSchema
    values: Extra


class SessionConfigState(Wire, frozen=True, kw_only=True):
    schema: SessionConfigSchema
    values: Extra
