"""`session-server call` and its host, killed while the call waits for people."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls.host_kills import ANSWERS, Pairing, paired
from tests.cli.shells import Running, Shell, shell_of
from tests.gateway.requests_2026 import People, wait_for
from tests.servers import ServerProcess, sqlite_store

SESSION = "ahp-session:/call-zoo"
WAITS = "It asks a question"


@pytest.fixture(scope="module")
def pairing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairing]:
    with paired("modern", "stdio", tmp_path_factory.mktemp("call")) as pairing:
        yield pairing


class Host:
    """A host on one port and one store, however often it is killed."""

    def __init__(self, pairing: Pairing, folder: Path) -> None:
        self._arguments = (sqlite_store(folder), "--mcp-config", str(pairing.config))
        self.process = ServerProcess(*self._arguments)
        self.people = People(self.process.url)
        self.shell: Shell = shell_of(self.process)

    def killed_and_started_again(self) -> None:
        self.process.kill()
        self.process = ServerProcess(*self._arguments, port=self.process.port)

    def close(self) -> None:
        self.people.http.close()
        self.process.kill()

    # What people see and do

    @property
    def call_ids(self) -> list[str]:
        return [call["id"] for call in self.people.calls(SESSION)]

    def answer(self, *messages: str) -> None:
        for message in messages:
            (question,) = wait_for(lambda part=message: self._open(part))
            self.people.complete(SESSION, question, ANSWERS[message])

    def asks(self, message: str) -> None:
        """Returns once it does."""
        wait_for(lambda: self._open(message))

    def _open(self, message: str) -> list[dict[str, object]]:
        asked = self.people.questions(SESSION)
        return [one for one in asked if message in one["request"]["message"]]

    def is_marked(self) -> bool:
        """Whether people see that nobody waits for their answers."""
        (question,) = self.people.questions(SESSION)
        return "askerGoneSince" in question["request"]["_meta"]


@pytest.fixture
def host(pairing: Pairing, tmp_path: Path) -> Iterator[Host]:
    host = Host(pairing, tmp_path)
    yield host
    host.close()


def calling(service: str, lease: str = "1h") -> tuple[str, ...]:
    return ("call", "zoo", "release", "--arg", f"service={service}", "--lease", lease)


def killed(command: Running) -> None:
    command.hear(WAITS, on="err")
    command.process.kill()
    assert command.end().code == -9


def printed(service: str) -> tuple[int, str]:
    return 0, f"{service} is in production within 5 minutes\n"


@pytest.mark.slow
def test_the_call_of_a_killed_command_is_marked_and_its_result_is_kept(
    host: Host, pairing: Pairing
) -> None:
    service = "its command was killed"
    with host.shell.running(*calling(service, lease="1s")) as command:
        killed(command)
    (call_id,) = host.call_ids
    wait_for(host.is_marked)
    host.answer(*ANSWERS)
    wait_for(lambda: host.people.calls(SESSION)[0]["state"] == "finished")
    again = host.shell(*calling(service))
    assert (again.code, again.out) == printed(service)
    assert (host.call_ids, pairing.ran(service)) == ([call_id], 1)
    with host.shell.running(*calling(service)) as command:
        command.hear(WAITS, on="err")  # the result was fetched, so this is a new call
        assert len(host.call_ids) == 2


@pytest.mark.slow
def test_a_command_goes_on_waiting_while_its_host_is_killed(host: Host, pairing: Pairing) -> None:
    service = "its host was killed"
    first, *others = ANSWERS
    with host.shell.running(*calling(service)) as command:
        command.hear(WAITS, on="err")
        host.killed_and_started_again()
        host.answer(first)
        host.asks(others[0])  # killed before, people would be asked whether it runs again
        host.killed_and_started_again()
        host.answer(*others)
        done = command.end()
    assert (done.code, done.out) == printed(service)
    assert (len(host.call_ids), pairing.ran(service)) == (1, 1)


@pytest.mark.slow
def test_a_call_is_taken_up_again_after_both_were_killed(host: Host, pairing: Pairing) -> None:
    service = "both were killed"
    with host.shell.running(*calling(service, lease="1s")) as command:
        killed(command)
    (call_id,) = host.call_ids
    host.killed_and_started_again()
    wait_for(host.is_marked)
    with host.shell.running(*calling(service)) as command:
        wait_for(lambda: not host.is_marked())
        host.answer(*ANSWERS)
        done = command.end()
    assert (done.code, done.out) == printed(service)
    assert (host.call_ids, pairing.ran(service)) == ([call_id], 1)
