"""The page's JavaScript passes the type checker."""

import subprocess

from docs import typescript
from tests.npm_modules import ROOT, node, npm_script
from tests.page.client.node import DEADLINE


def test_types() -> None:
    typescript.write()
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
