"""Two devices complete at the same moment: one of them does, and the server hears of it once."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from session_server.client import RequestClosed, Session, connect
from session_server.schemas.ahp.questions import InputRequest
from tests.mcp import zoo
from tests.servers import AT_ANY_PACE, serving, sqlite_store

TIMES = 200
AT_ONCE = 10
SECONDS = 60


async def raced(http: httpx2.AsyncClient, devices: tuple[Session, Session], number: int) -> None:
    """A call of its own, completed by two devices at the same moment."""
    wanted = {"server": "zoo", "tool": "weather"}
    key = {"Idempotency-Key": f"race-{number}"}
    call = (await http.post("/v1/sessions/race/calls", json=wanted, headers=key)).json()

    def is_its(request: InputRequest) -> bool:
        return request.meta is not None and request.meta.call == call["id"]

    requests = [await device.wait_for_request(is_its, SECONDS) for device in devices]
    ends = await asyncio.gather(
        *(
            device.complete(requests[0].id, answers={"city": f"{city}-{number}"})
            for device, city in zip(devices, ("Oslo", "Bergen"), strict=True)
        ),
        return_exceptions=True,
    )
    lost = [end for end in ends if isinstance(end, BaseException)]
    assert [type(end) for end in lost] == [RequestClosed]
    winner = "Bergen" if ends[0] is lost[0] else "Oslo"
    view = (await http.get(f"/v1/calls/{call['id']}?wait={SECONDS}")).json()
    assert zoo.text_of(view["result"]) == f"Sunny in {winner}-{number}"


@pytest.mark.slow
def test_of_two_devices_that_complete_at_once_exactly_one_does(tmp_path: Path) -> None:
    file = tmp_path / "effects"

    async def main(url: str, ahp: str) -> None:
        async with (
            httpx2.AsyncClient(base_url=url, timeout=SECONDS) as http,
            connect(ahp) as laptop,
            connect(ahp) as phone,
        ):
            await http.post("/v1/sessions", json={"resource": "ahp-session:/race"})
            async with (
                laptop.session("ahp-session:/race") as one,
                phone.session("ahp-session:/race") as other,
            ):
                for first in range(0, TIMES, AT_ONCE):
                    numbers = range(first, first + AT_ONCE)
                    await asyncio.gather(*(raced(http, (one, other), n) for n in numbers))

    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        arguments = ("--mcp-config", str(config), *AT_ANY_PACE)
        with serving(sqlite_store(tmp_path), *arguments) as host:
            asyncio.run(main(host.url, host.ahp))
    cities = [row["city"] for row in zoo.effects(file, "weather")]
    assert len(cities) == TIMES
    assert {int(city.partition("-")[2]) for city in cities} == set(range(TIMES))
