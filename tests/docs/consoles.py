"""The commands that a page shows: run in their order, and held against what it says they print."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent
MARK = "=== next ==="
SECONDS = 120


class Example(NamedTuple):
    command: str
    promised: str

    def is_kept_by(self, printed: str) -> bool:
        """`…` stands for anything."""
        pattern = ".*".join(map(re.escape, self.promised.strip().split("…")))
        return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def examples(page: Path) -> list[Example]:
    found: list[Example] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Example(line[2:], ""))
            elif line.startswith("> "):
                found[-1] = Example(f"{found[-1].command}\n{line[2:]}", "")
            else:
                found[-1] = found[-1]._replace(promised=f"{found[-1].promised}{line}\n")
    return found


def printed_by(commands: list[str], folder: Path, **environment: str) -> list[str]:
    """What each command prints, in one shell: later ones use what earlier ones leave behind."""
    script = "\n".join(f"{command}\necho; echo '{MARK}'" for command in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
    )
    *printed, _ = done.stdout.split(MARK)
    assert len(printed) == len(commands), done.stdout
    return printed
