"""A folder for locks and the like that nobody else can put anything into."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from airloom.errors import RunError


def runtime_folder() -> Path:
    """This user's own folder for what belongs to running programs. Raises `RunError` where there can be none.

    The one that the system gives (`XDG_RUNTIME_DIR`, of the XDG Base Directory Specification), for root one in `/run`,
    else one in the user's cache; never one that others may write to.
    """
    for place in _candidates():
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            found = place.lstat()
        except OSError:
            continue
        is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
        if is_own and os.access(place, os.W_OK):
            return place
    raise RunError("no folder of your own for locks: set XDG_RUNTIME_DIR to one that only you can write to")


def _candidates() -> Iterator[Path]:
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and os.path.isabs(given):
        yield Path(given) / "airloom"
    if os.geteuid() == 0:
        yield Path("/run/airloom")
    cache = os.environ.get("XDG_CACHE_HOME")
    home = Path(cache) if cache and os.path.isabs(cache) else Path.home() / ".cache"
    if home.is_dir():
        yield home / "airloom"


def open_lock(name: str) -> int:
    """Opens a lock file in that folder, for `fcntl.flock`; a link in its place is refused."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(runtime_folder() / name, flags, 0o600)
