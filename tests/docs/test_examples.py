"""The examples run, and say what they promise."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_devices_finish_a_parked_call() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "two_devices.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"requestState": "v1.opaque-and-sealed"' in done.stdout
    assert '"region": "eu-north"' in done.stdout
    assert "Too late: Ana answered" in done.stdout
