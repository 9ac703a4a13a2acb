"""The direction of imports is enforced: each contract is broken once and must say so.

That none is broken is for `lint-imports` itself, which `make lint` runs.
"""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEADLINE = 60
slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the source, links and all, that may be broken."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("reducers", "schemas", "session_server", "web_demo"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(project: Path) -> tuple[int, str]:
    done = subprocess.run(
        [BIN / "lint-imports", "--no-cache"],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(project), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.proves(
    "design.layers.direction",
    "design.layers.core",
    "design.layers.backends",
    "design.layers.bare-names",
    "design.pure.world",
)
@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("schemas/broken.py", "from .. import reducers", "import session_server.reducers"),
        slow("schemas/broken.py", "from ..cli import app", "import session_server.cli"),
        slow("reducers/broken.py", "from ..cli import app", "import session_server.cli"),
        ("reducers/broken.py", "import time", "import time"),
        slow("schemas/broken.py", "from asyncio import sleep", "import asyncio"),
        slow("reducers/broken.py", "import schemas.wire", "import schemas"),
        slow("session_server/cli/broken.py", "import reducers", "import reducers"),
        slow("session_server/host/broken.py", "import starlette", "import starlette"),
        slow(
            "session_server/http/broken.py", "from ..log import sqlite", "session_server.log.sqlite"
        ),
        slow("session_server/unlisted.py", "", "session_server.unlisted"),
    ],
)
def test_a_broken_contract_is_found(project: Path, path: str, line: str, complaint: str) -> None:
    (project / path).write_text(line + "\n")
    code, said = lint_imports(project)
    assert code == 1
    assert complaint in said


@pytest.mark.proves("design.layers.bare-names")
@pytest.mark.parametrize("name", ["reducers", "schemas"])
@pytest.mark.parametrize("folder", ["session_server", "tests", "benchmarks", "examples"])
def test_the_linter_bans_bare_names(name: str, folder: str) -> None:
    done = subprocess.run(
        [BIN / "ruff", "check", "--select=TID251", f"--stdin-filename={folder}/any.py", "-"],
        cwd=ROOT,
        input=f"from {name}.wire import Wire\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 1
    assert "TID251" in done.stdout
