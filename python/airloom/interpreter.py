"""Commands that start this interpreter again.

`python -m` and `python -c` look for modules in the current folder first: who runs airloom in a shared folder, or in one
that came out of an archive, would run what lies there, and as root perhaps. Every command of ours that starts Python is
made here, with `-P`, which forbids that; `tests/test_interpreter.py` finds others.
"""

from __future__ import annotations

import sys


def python(*words: str) -> list[str]:
    """This interpreter with a script, `-m MODULE` or `-c CODE`; nothing is imported from the current folder."""
    return [sys.executable, "-P", *words]


def airloom(*words: str) -> list[str]:
    """`airloom` with these words, by this interpreter."""
    return python("-m", "airloom", *words)
