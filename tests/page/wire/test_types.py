"""The page is plain JavaScript whose types are checked."""

import subprocess

from tests.npm_modules import ROOT, node, npm_script
from tests.page.wire.node import DEADLINE


def test_the_types_of_the_page_are_sound() -> None:
    done = subprocess.run(
        [node(), str(npm_script("typescript", "bin/tsc")), "-p", "tests/page/tsconfig.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
