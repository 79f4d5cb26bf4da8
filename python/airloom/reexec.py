"""Starting a program with the rights to enter laboratories: what `airloom python` and the plug-in of pytest do.

The kernel lets a process into a new user namespace only while it has a single thread. So this is done first, and the
program is then loaded anew: it keeps the rights, and so do the processes it starts, such as the workers of
pytest-xdist.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from airloom import _core
from airloom.errors import Unsupported


def become(arguments: list[str]) -> NoReturn:
    """Turns this process into the Python interpreter with `arguments`, with the rights to enter laboratories."""
    if not _core.rights()[1]:
        threads = len(os.listdir("/proc/self/task"))
        if threads > 1:
            raise Unsupported(
                f"this process has {threads} threads already; a user namespace takes one with a single one"
            )
        _core.enter_user_namespace()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *arguments])
