"""Proves that the coverage report is about all of `schemas` and `reducers`.

A file that is missing from the report cannot lower its percentage.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("reducers", "schemas")
LINKS = tuple(f"session_server/{folder}/" for folder in FOLDERS)


def sources(root: Path) -> set[str]:
    found = (path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix() for path in found}


def faults(expected: Iterable[str], reported: Iterable[str]) -> list[str]:
    reported = set(reported)
    missing = [f"not in the report: {path}" for path in sorted(set(expected) - reported)]
    twice = [f"measured through a link: {path}" for path in reported if path.startswith(LINKS)]
    return missing + sorted(twice)


def main(report: str) -> int:
    expected = sources(Path.cwd())
    reported = json.loads(Path(report).read_text())["files"]
    found = faults(expected, reported) if expected else ["no sources found"]
    for fault in found:
        sys.stderr.write(f"coverage: {fault}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
