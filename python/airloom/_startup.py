"""The first that runs of the program: until it can clear things away there are none, and Ctrl-C just ends it.

Python's own handler raises an exception, which is lost where one falls into the callback of a weak reference; while
modules are imported that happens.
"""

import signal
import sys
from os.path import basename


def _is_the_program() -> bool:
    """Is this process `airloom` or `python -m airloom`, and not somebody else who imports the package?"""
    words = sys.orig_argv
    by_module = "-m" in words and words[words.index("-m") + 1 :][:1] == ["airloom"]
    return by_module or (bool(sys.argv) and basename(sys.argv[0]) == "airloom")


if _is_the_program() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
