"""What docs/deployment.md shows is well-formed, and names settings that there are."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from session_server.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def test_the_unit_is_valid(tmp_path: Path) -> None:
    """The program is not where the unit has it, so that another stands for it."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    path = tmp_path / "session-server.service"
    path.write_text(block("ini").replace("/opt/session-server/bin/session-server", "/bin/true"))
    done = subprocess.run(
        [program, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, str(path) in done.stderr) == (0, False), done.stderr


def test_variables_are_settings() -> None:
    names = set(re.findall(r"SESSION_SERVER_([A-Z_]+)", PAGE))
    assert {name.lower() for name in names} <= set(Settings.model_fields)
    assert {"store", "shared", "secret", "public_url"} <= {name.lower() for name in names}


def test_the_manifest_asks_the_probes_that_there_are() -> None:
    documents: list[Any] = list(yaml.safe_load_all(block("yaml")))
    assert [document["kind"] for document in documents] == ["Deployment", "Secret", "Service"]
    pod = documents[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    flags = [argument for argument in container["args"] if argument.startswith("--")]
    assert {flag[2:].replace("-", "_") for flag in flags} <= set(Settings.model_fields)
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
