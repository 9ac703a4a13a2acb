"""What a user gets: one package, whole, under one name, however it was built."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from session_server import __version__

ROOT = Path(__file__).resolve().parent.parent
LINKS = ("reducers", "schemas", "web_demo")
DEADLINE = 300


def run(*command: object, cwd: Path) -> str:
    """What the command printed; its own words if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def built(out: Path, *options: str) -> dict[str, bytes]:
    run(sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", out, ROOT, cwd=out)
    return contents(next(out.glob("*.whl")))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that held nothing before `pip install .`."""
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", ROOT, cwd=environment)
    return environment


@pytest.mark.proves("design.packaging.links")
def test_the_links_lead_to_the_real_folders() -> None:
    for name in LINKS:
        link = ROOT / "session_server" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..", name)
        assert link.resolve() == ROOT / name


@pytest.mark.slow
@pytest.mark.proves("design.packaging.one-package")
def test_the_wheel_holds_one_package_and_nothing_else(wheel: dict[str, bytes]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert tops == {"session_server", f"session_server-{__version__}.dist-info"}


@pytest.mark.proves("design.packaging.whole")
@pytest.mark.parametrize("folder", LINKS)
def test_the_wheel_holds_every_file_behind_the_links(wheel: dict[str, bytes], folder: str) -> None:
    real = {
        f"session_server/{path.relative_to(ROOT).as_posix()}": path.read_bytes()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert real
    inside = f"session_server/{folder}/"
    packed = {name: data for name, data in wheel.items() if name.startswith(inside)}
    assert packed == real


@pytest.mark.proves("design.packaging.typed")
def test_the_wheel_says_that_it_is_typed(wheel: dict[str, bytes]) -> None:
    assert "session_server/py.typed" in wheel


@pytest.mark.proves("design.packaging.reasons")
def test_the_docs_give_a_reason_for_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=!~ ]", line, maxsplit=1)[0] for line in listed}
    told = set(
        re.findall(
            r"^- `([^`]+)`: \S", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE
        )
    )
    assert names == told


@pytest.mark.slow
@pytest.mark.proves("design.packaging.sdist")
def test_the_source_distribution_builds_the_same_wheel(
    wheel: dict[str, bytes], wheel_of_sdist: dict[str, bytes]
) -> None:
    assert wheel_of_sdist == wheel


@pytest.mark.slow
@pytest.mark.proves("design.packaging.import")
def test_an_installed_package_imports_under_its_own_name(installed: Path, tmp_path: Path) -> None:
    code = "import session_server.schemas.codec, session_server.reducers as r; print(r.__file__)"
    where = run(installed / "bin" / "python", "-I", "-c", code, cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed)


@pytest.mark.slow
@pytest.mark.proves("design.packaging.command")
def test_an_installed_package_brings_the_command(installed: Path, tmp_path: Path) -> None:
    program = installed / "bin" / "session-server"
    assert run(program, "--version", cwd=tmp_path) == f"session-server {__version__}\n"
    assert "doctor" in run(program, "--help", cwd=tmp_path), "which loads every command"


@pytest.mark.slow
@pytest.mark.proves("design.packaging.no-bare-names")
def test_an_installed_package_takes_no_common_name(installed: Path, tmp_path: Path) -> None:
    finds = (
        "from importlib.util import find_spec as f; print([f(n) for n in ('schemas','reducers')])"
    )
    assert run(installed / "bin" / "python", "-I", "-c", finds, cwd=tmp_path) == "[None, None]\n"


@pytest.mark.slow
@pytest.mark.proves("design.packaging.no-bare-names")
def test_an_application_keeps_its_own_schemas_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "__init__.py").write_text("OWNER = 'application'\n")
    app = tmp_path / "app.py"
    app.write_text("import session_server.schemas.codec, schemas\nprint(schemas.OWNER)\n")
    assert run(installed / "bin" / "python", app, cwd=tmp_path) == "application\n"
