"""Node and what tests take from npm: found where `make setup` puts it, or the test is skipped."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / "build" / "npm" / "node_modules"


def node() -> str:
    """The path of Node."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node; install nodejs 20 or newer")
    return found


def npm_script(package: str, path: str) -> Path:
    """A file of an installed package."""
    script = NPM / package / path
    if not script.is_file():
        pytest.skip(f"{package} is not installed; run `make setup` where npm is")
    return script
