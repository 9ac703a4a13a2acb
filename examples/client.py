"""Answers the demo's question: run `session-server serve --demo`, then this."""

import asyncio
import sys

from session_server.client import Client, RequestClosed, connect
from session_server.schemas.ahp.session import Status


async def main(url: str) -> None:
    async with connect(url) as client:
        print(f"{client.status}, {await client.ping() * 1000:.1f} ms away")
        for summary in await client.list_sessions():
            needs_input = summary.status & Status.INPUT_NEEDED == Status.INPUT_NEEDED
            print(f"- {summary.title}{' (asks something)' if needs_input else ''}")
        await answer_demo(client)


async def answer_demo(client: Client) -> None:
    async with client.session("ahp-session:/demo") as session:
        if session.state.active_turn is None:
            await session.start_turn("Plan another trip")
        request = await session.wait_for_request(timeout=10)
        print(f"{request.message}:")
        for question in request.questions or ():
            print(f"  {question.message}{' *' if question.required else ''}")
        await session.answer(request.id, "name", "Fjo", draft=True)  # others see it being typed
        before = len(session.state.turns)
        try:
            await session.complete(
                request.id, "accept", {"name": "Fjords", "city": "Oslo", "interests": ["food"]}
            )
        except RequestClosed as late:
            print(f"{late.by or 'Somebody'} was faster: {late}")
        done = await session.wait_until(lambda state: len(state.turns) > before, timeout=10)
        for part in done.turns[-1].response_parts:
            print(getattr(part, "content", ""))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8737"))
