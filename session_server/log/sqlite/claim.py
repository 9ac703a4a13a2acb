"""The file next to a database that says who has it open and how far it had come.

The first keeps a second process out; the second tells a log from a copy of it, or from a backup
that was put back in its place. A claim can be deleted, and a hard link has another one, so the
database's own inode is locked as well. The operating system releases both when the process dies.
"""

import errno
import fcntl
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from session_server.log.protocol import InUseError
from session_server.schemas.wire import Seq

SUFFIX = "-claim"
SYNCED = "synced"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNKNOWN_BOOT = "unknown"
SEQ_DIGITS = 16
TIME_DIGITS = 20

COPIED_SECONDS = 10
"""A claim says when it was written, and the file system when the file was. If these differ by more,
someone put a copy in its place; a copy of database and claim, copied over both, shows only here."""

LOCKED_BYTE = 1 << 62
"""Beyond the end of any database, and beyond the bytes that SQLite itself locks."""

SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
"""A lock of the open file: SQLite, closing its own files, would release a lock of the process."""

UNSUPPORTED = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class FileState(NamedTuple):
    """What was last known of the database.

    `boot` is the boot of the machine that what was written must outlive to be on disk, or `SYNCED`.
    `is_original`: the claim is where it was written, and not a copy that was put back.
    """

    seq: Seq
    epoch: str
    inode: int
    boot: str
    is_original: bool = True

    @property
    def is_synced(self) -> bool:
        """Whether nothing that was in it can have been lost with the power."""
        return self.boot == SYNCED or self.boot == this_boot() != UNKNOWN_BOOT

    def fits(self, epoch: str, inode: int, last_seq: Seq) -> bool:
        """Whether a database is the one that was known, with everything that was in it."""
        is_same = (self.epoch, self.inode) == (epoch, inode)
        return is_same and self.is_original and self.is_synced and self.seq <= last_seq


def _progress(seq: Seq) -> str:
    return f"{seq:0{SEQ_DIGITS}d} {time.time_ns():0{TIME_DIGITS}d}"


def claim_of(database: Path) -> Path:
    return database.with_name(database.name + SUFFIX)


def this_boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return UNKNOWN_BOOT


class Claim:
    """Raises `InUseError` when another process has one, and `OSError` when it cannot be written."""

    def __init__(self, database: Path) -> None:
        self._path = claim_of(database)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        self._database: int | None = None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            error = self._in_use(database)
            os.close(self._file)
            raise error from None
        except BaseException:
            os.close(self._file)
            raise

    def hold(self, database: Path) -> None:
        """Makes the database if it is not there, and keeps others out by whatever name they come.

        Where the system knows no such lock, the claim alone has to do.
        """
        # What people have answered is nobody else's to read.
        self._database = os.open(database, os.O_RDWR | os.O_CREAT, 0o600)
        if SET_LOCK is None:
            return
        wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
        try:
            fcntl.fcntl(self._database, SET_LOCK, wanted)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                reason = f"{database} is in use by another process, perhaps by another name of it"
                raise InUseError(f"{reason}; only one can have it open.", None) from None
            if error.errno not in UNSUPPORTED:
                raise

    def _in_use(self, database: Path) -> InUseError:
        fields = os.pread(self._file, 1_000, 0).decode(errors="replace").split()
        pid = int(fields[-1]) if fields and fields[-1].isdecimal() else None
        owner = "another process" if pid is None else f"process {pid}"
        return InUseError(f"{database} is in use by {owner}; only one can have it open.", pid)

    def state(self) -> FileState | None:
        """What the claim before this one left; `None` if nothing, or nothing legible."""
        fields = os.pread(self._file, 1_000, 0).decode(errors="replace").split()
        try:
            seq, written, epoch, inode, boot, _pid = fields
            changed = os.fstat(self._file).st_ctime_ns
            is_original = abs(changed - int(written)) < COPIED_SECONDS * 1_000_000_000
            return FileState(int(seq), epoch, int(inode), boot, is_original)
        except ValueError:
            return None

    def write(self, state: FileState) -> None:
        text = f"{_progress(state.seq)} {state.epoch} {state.inode} {state.boot}"
        line = f"{text} {os.getpid()}\n".encode()
        os.pwrite(self._file, line, 0)
        os.ftruncate(self._file, len(line))
        os.fsync(self._file)

    def reach(self, seq: Seq) -> None:
        """Not synced: it need only outlive the process. Too low a seq does no harm."""
        with suppress(OSError):
            os.pwrite(self._file, _progress(seq).encode(), 0)

    def release(self) -> None:
        """The file stays: what it says is for the next claim.

        Not before SQLite has let go: closing any file of an inode releases SQLite's locks on it.
        """
        if self._database is not None:
            os.close(self._database)
        os.close(self._file)
