"""The zoo itself: each server and client works with its own kind, without us in between."""

import json
from pathlib import Path

import pytest

from tests.mcp import zoo

ANSWERS = {"environment": "production", "sure": True}


@pytest.mark.parametrize("kind", ["modern", "typescript", "legacy"])
def test_each_client_gets_its_answers_to_a_server_of_its_kind(
    kind: zoo.Kind, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    with zoo.http_server(kind, "--effects", str(effects)) as server:
        spec = {
            "url": server.url,
            "match": ANSWERS,
            "calls": [["tools/call", "deploy", {"service": "web"}]],
        }
        report = zoo.run_client(kind, spec)
    assert report["version"] == ("2025-11-25" if kind == "legacy" else "2026-07-28")
    assert zoo.text_of(report["results"][0]) == "web is in production"
    assert len(report["asked"]) == 2
    assert len(zoo.effects(effects, "deploy")) == 1


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((zoo.HERE / "node" / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
