"""Node processes that run the page's modules."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.npm_modules import ROOT, node

HERE = Path(__file__).resolve().parent
DEADLINE = 60
NO_CHATTER = (
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
    "--disable-warning=ExperimentalWarning",
)


def run_tests(*names: str, deadline: float = DEADLINE) -> str:
    """Runs `node --test` on files of this folder; what it says if they fail."""
    files = [str(HERE / name) for name in names]
    return run("--test", "--test-reporter=spec", *files, deadline=deadline)


def run(*arguments: str, deadline: float = DEADLINE) -> str:
    done = subprocess.run(
        [node(), *NO_CHATTER, "--experimental-websocket", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=deadline,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


class Lines:
    """A long-lived process that answers each line of JSON with one."""

    def __init__(self, script: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [node(), *NO_CHATTER, "--experimental-websocket", str(HERE / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: bytes | str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        text = question if isinstance(question, str) else question.decode()
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline(), parse_int=float)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=DEADLINE)
        self._process.stdout.close()


class DeviceError(AssertionError):
    """What the code raised over there."""

    def __init__(self, words: str, code: str | None) -> None:
        super().__init__(words)
        self.code = code


class Device(Lines):
    """A page without a browser."""

    def __init__(self) -> None:
        super().__init__("device.js")

    def begin(self, url: str) -> None:
        """A new browser, with the address of a host."""
        self.run("begin(address)", address=f"{url.replace('http', 'ws', 1)}/ahp")

    def run(self, code: str, **values: Any) -> Any:
        """The value of an expression, or what statements return; `values` are in reach by name."""
        given = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
        statements = code if "return" in code or ";" in code else f"return {code}"
        reply = self.ask(json.dumps(f"{{ {given} {statements} }}"))
        if "error" in reply:
            raise DeviceError(reply["error"], reply.get("code"))
        return reply.get("value")

    def until(self, code: str, patience: float = 10, **values: Any) -> Any:
        """The expression's value as soon as it is true."""
        return self.run(f"until(() => ({code}), {patience * 1000})", **values)

    def load(self) -> str:
        """Opens the page; gives its client id."""
        identity: str = self.run("load()")
        return identity

    def look_at(self, session: str) -> None:
        self.run("open(uri)", uri=session)
        self.until("session.phase === 'open'")

    def type(self, question: str, text: str, *, pause: float = 0) -> None:
        """A keystroke at a time, into the field that has the focus now."""
        self.run(
            "for (let i = 1; i <= typed.length; i++) {"
            "  field(question).edit(text(typed.slice(0, i)));"
            "  if (pause) await sleep(pause);"
            "}",
            question=question,
            typed=text,
            pause=pause * 1000,
        )

    def until_held(self, question: str, value: Any) -> None:
        """Waits until the host has this answer."""
        self.until("held(question)?.value?.value === value", question=question, value=value)

    def shown(self, question: str) -> Any:
        """What the field shows."""
        return self.run("field(question).value?.value", question=question)

    def held(self, question: str) -> Any:
        """What the host has, as far as this page knows."""
        return self.run("held(question)?.value?.value", question=question)
