"""What a host says when it listens: where it is, and how people get in."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from session_server.agents.demo import DEMO_SESSION
from session_server.agents.deploy_demo import DEPLOY_SESSION
from session_server.identity.binding import ALL_ADDRESSES, Binding, reachable
from session_server.log.opening import redacted
from session_server.reducers.texts import session_name
from session_server.settings import Settings

Address: TypeAlias = tuple[str, int]

DEMOS = (
    (DEMO_SESSION, "an agent that asks"),
    (DEPLOY_SESSION, "an MCP call that waits for people"),
)


def listening(addresses: Iterable[Address]) -> str:
    return "".join(f"session-server at {_url(address)}\n" for address in addresses)


def banner(
    settings: Settings, binding: Binding, addresses: list[Address], servers: Iterable[str] = ()
) -> str:
    """`servers` are the names of the MCP servers that the gateway offers."""
    where = _where(settings, addresses[0])
    lines = [
        *_way_in(binding, where),
        *_doors(where, servers),
        ("Data", redacted(settings.store) if settings.store else f"{settings.data_dir}/"),
        *_phones(settings),
        *(_demos(where) if settings.demo else ()),
    ]
    return listening(addresses) + "".join(f"  {name:<4}  {words}\n" for name, words in lines)


def _where(settings: Settings, address: Address) -> str:
    """An address that leads here from elsewhere, if there is one: `0.0.0.0` is none."""
    if settings.public_url is not None or settings.host in ALL_ADDRESSES:
        return reachable(settings, "", address[1]).url
    return _url(address)


def _way_in(binding: Binding, where: str) -> Iterator[tuple[str, str]]:
    """A new token is told this once; one that was given is known to whoever gave it."""
    if binding.token is not None:
        link = f"{where}/?tkn={binding.token}"
        yield "Open", link
        yield "CLI", f"export SESSION_SERVER_URL='{link}'"
        return
    if binding.access.connection_token is None:
        yield "Page", f"{where}/"
        return
    yield "Page", f"{where}/?tkn=… with its connection token"
    if binding.file is not None:
        yield "", f"which is new, in {binding.file}"


def _doors(where: str, servers: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield "AHP", f"ws{where.removeprefix('http')}/ahp"
    yield "HTTP", f"{where}/docs"
    yield "", f"{where}/v1/sessions"
    yield "MCP", f"{where}/mcp  tools to ask people"
    for name in servers:
        yield "", f"{where}/mcp/{name}  gateway to {name}"


def _phones(settings: Settings) -> Iterator[tuple[str, str]]:
    if reachable(settings, "", 0).warning is not None:
        how = "session-server serve --host 0.0.0.0 --connection-token generate"
        yield "", f"Only this machine can reach it. For phones and others: {how}"


def _demos(where: str) -> Iterator[tuple[str, str]]:
    for place, (uri, words) in enumerate(DEMOS):
        yield "" if place else "Demo", f"{where}/#/s/{session_name(uri)}  {words}"


def _url(address: Address) -> str:
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
