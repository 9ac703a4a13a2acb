"""Active clients, as AHP 0.3.0 shows the one and as AHP 0.9 and 1.x list them all."""

from session_server.schemas.ahp.customizations import ClientPlugin
from session_server.schemas.ahp.session import ActiveClient
from session_server.schemas.ahp1.state import ClientEntry, ClientPluginEntry, Enablement
from session_server.schemas.wire import reshaped

SCOPES = ("session", "workspace", "global")
"""Of an enablement, the innermost first."""


def client_entry(client: ActiveClient) -> ClientEntry:
    """A client as AHP 0.9 and 1.x show it."""
    plugins = client.customizations
    entries = None if plugins is None else tuple(_plugin_entry(plugin) for plugin in plugins)
    return reshaped(ClientEntry, client, customizations=entries)


def _plugin_entry(plugin: ClientPlugin) -> ClientPluginEntry:
    return reshaped(ClientPluginEntry, plugin, enablement=enablement(enabled=plugin.enabled))


def active_client(entry: ClientEntry) -> ActiveClient:
    """A client as 0.3.0 shows it."""
    entries = entry.customizations
    plugins = None if entries is None else tuple(_client_plugin(plugin) for plugin in entries)
    return reshaped(ActiveClient, entry, customizations=plugins)


def _client_plugin(plugin: ClientPluginEntry) -> ClientPlugin:
    enabled = is_enabled(plugin.enablement or ())
    return reshaped(ClientPlugin, plugin, enabled=enabled, client_id=None, load=None, children=None)


def enablement(*, enabled: bool) -> tuple[Enablement, ...]:
    return (Enablement(kind="session", enabled=enabled),)


def is_enabled(enablement: tuple[Enablement, ...]) -> bool:
    """As the innermost scope sets it; enabled if no scope does."""
    by_scope = {one.kind: one.enabled for one in reversed(enablement)}
    return next((by_scope[scope] for scope in SCOPES if scope in by_scope), True)


def with_client(clients: tuple[ClientEntry, ...], entry: ClientEntry) -> tuple[ClientEntry, ...]:
    if any(known.client_id == entry.client_id for known in clients):
        return tuple(entry if known.client_id == entry.client_id else known for known in clients)
    return (*clients, entry)


def without_client(clients: tuple[ClientEntry, ...], client_id: str) -> tuple[ClientEntry, ...]:
    return tuple(known for known in clients if known.client_id != client_id)
