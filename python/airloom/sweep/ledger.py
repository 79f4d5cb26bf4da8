"""Who makes which runs, where the workers are of this machine: they take runs themselves, some at a time.

The runs are numbered, and a file in memory has an entry for each that was taken, in their order. A worker appends
entries and sees by their place which runs are its own: the kernel puts what is appended behind all that is there,
whoever else does so at the same time (write(2), O_APPEND). Nobody waits for anybody, and what a worker has taken stays
written if it dies.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Self

#: The task that took a run, and which of its pieces it was: several runs may be taken at once.
_ENTRY = struct.Struct("<II")


class Ledger:
    """The entries, as the runner sees them."""

    def __init__(self) -> None:
        """No run is taken. Worker processes get the descriptor `fd` under the same number."""
        self.fd = -1
        self.fd = os.memfd_create("airloom-ledger")

    def __len__(self) -> int:
        """How many runs were taken, and wanted beyond the last one."""
        return os.fstat(self.fd).st_size // _ENTRY.size

    def clear(self) -> None:
        """Forgets all entries: other runs are numbered from now on."""
        os.ftruncate(self.fd, 0)

    def last_of(self, task: int, of: int) -> list[int]:
        """The runs that a task took last, of `of` that there are; those before them it had made by then."""
        # Nobody knows beforehand whether there are any left: entries beyond the last run are nobody's.
        count = min(len(self), of)
        entries = list(_ENTRY.iter_unpack(os.pread(self.fd, count * _ENTRY.size, 0)))
        last = max((piece for by, piece in entries if by == task), default=None)
        return [run for run, entry in enumerate(entries) if entry == (task, last)]

    def close(self) -> None:
        """Nobody takes anything more. To close it again does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        """Once nobody has it any more."""
        self.close()


class Taker:
    """A task that takes runs."""

    def __init__(self, fd: int, task: int) -> None:
        """By the descriptor of the entries and the number of the task."""
        self._task = task
        self._pieces = 0
        # The same file with a position of our own: that of `fd` is shared by all processes that have it.
        self._file = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def left(self, of: int) -> int:
        """How many of `of` runs nobody has taken yet."""
        return max(of - os.fstat(self._file).st_size // _ENTRY.size, 0)

    def take(self, count: int) -> int:
        """Takes so many runs; the number of the first one. There may be fewer than that left, or none."""
        entries = _ENTRY.pack(self._task, self._pieces) * count
        written = os.write(self._file, entries)
        if written < len(entries):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "memory")
        self._pieces += 1
        return (os.lseek(self._file, 0, os.SEEK_CUR) - written) // _ENTRY.size

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """It takes nothing more."""
        os.close(self._file)
