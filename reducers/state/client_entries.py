"""Active clients, as AHP 0.3.0 shows the one and as later versions list them all."""

from typing import Any

from session_server.schemas.ahp.customizations import ClientPlugin
from session_server.schemas.ahp.session import ActiveClient
from session_server.schemas.ahp1.state import ClientEntry, ClientPluginEntry, Enablement

CLIENT_FIELDS = ("client_id", "tools", "display_name")
PLUGIN_FIELDS = ("id", "uri", "name", "icons", "range", "nonce")
"""What has the same name and meaning in both versions."""

SCOPES = ("session", "workspace", "global")
"""Of an enablement, the innermost first."""


def client_entry(client: ActiveClient) -> ClientEntry:
    """A client as later versions show it."""
    plugins = client.customizations
    entries = None if plugins is None else tuple(_plugin_entry(plugin) for plugin in plugins)
    return ClientEntry(**_fields(client, CLIENT_FIELDS), customizations=entries)


def _plugin_entry(plugin: ClientPlugin) -> ClientPluginEntry:
    enablement = (Enablement(kind="session", enabled=plugin.enabled),)
    return ClientPluginEntry(**_fields(plugin, PLUGIN_FIELDS), enablement=enablement)


def active_client(entry: ClientEntry) -> ActiveClient:
    """A client as 0.3.0 shows it."""
    entries = entry.customizations
    plugins = None if entries is None else tuple(_client_plugin(plugin) for plugin in entries)
    return ActiveClient(**_fields(entry, CLIENT_FIELDS), customizations=plugins)


def _client_plugin(plugin: ClientPluginEntry) -> ClientPlugin:
    enabled = is_enabled(plugin.enablement or ())
    return ClientPlugin(**_fields(plugin, PLUGIN_FIELDS), enabled=enabled)


def _fields(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def is_enabled(enablement: tuple[Enablement, ...]) -> bool:
    """As the innermost scope sets it; enabled if no scope does."""
    for scope in SCOPES:
        for one in enablement:
            if one.kind == scope:
                return one.enabled
    return True


def with_client(clients: tuple[ClientEntry, ...], entry: ClientEntry) -> tuple[ClientEntry, ...]:
    if any(known.client_id == entry.client_id for known in clients):
        return tuple(entry if known.client_id == entry.client_id else known for known in clients)
    return (*clients, entry)


def without_client(clients: tuple[ClientEntry, ...], client_id: str) -> tuple[ClientEntry, ...]:
    return tuple(known for known in clients if known.client_id != client_id)
