"""What the zoo is built from."""

import json

from tests.mcp import zoo


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((zoo.HERE / "node" / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
