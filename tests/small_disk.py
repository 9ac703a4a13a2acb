"""A file system of a few megabytes, so that a disk can be full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, leaving: int = 0) -> Path:
    """A file that takes all the space but so much."""
    disk = os.statvfs(place)
    ballast = place / "ballast"
    ballast.write_bytes(bytes(disk.f_bavail * disk.f_frsize - leaving))
    return ballast
