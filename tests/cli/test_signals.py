"""A signal ends the program although Python loses the exception that it is."""

import signal
import subprocess
import sys

import pytest

#: What is raised inside the callback of a weak reference goes nowhere: every import has such a moment.
SCRIPT = """
import os, signal, sys, time, weakref
# However the tests were started: in the background, or under nohup, some signals are ignored from the beginning.
signal.signal(signal.{name}, signal.default_int_handler if "{name}" == "SIGINT" else signal.SIG_DFL)
from airloom.cli import signals

signals.install()

class Thing: pass

def callback(_):
    os.kill(os.getpid(), signal.{name})
    for _ in range(1000): pass

try:
    thing = Thing()
    reference = weakref.ref(thing, callback)
    del thing
    print("lost", flush=True)
    while True: time.sleep(1000)
finally:
    time.sleep(0.8)
    print("cleared away", flush=True)
    signals.done()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", -signal.SIGINT)])
def test_an_exception_that_got_lost_is_raised_again_and_clearing_away_is_left_alone(name: str, code: int) -> None:
    script = SCRIPT.format(name=name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "lost\ncleared away\n", done.stderr
    assert done.returncode == code
    assert "ignored" not in done.stderr


def test_a_signal_that_was_ignored_stays_so() -> None:
    script = (
        "import signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from airloom.cli import signals\n"
        "signals.install()\n"
        "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True\n", done.stderr


def test_until_there_is_something_to_clear_away_ctrl_c_just_ends_the_program_and_only_that() -> None:
    script = (
        "import signal, sys\n"
        "sys.orig_argv = {words!r}\n"
        "import airloom\n"
        "print(signal.getsignal(signal.SIGINT) == signal.SIG_DFL)\n"
    )
    for words, expected in [
        (["python", "-m", "airloom", "doctor"], "True\n"),
        (["python", "-m", "pytest"], "False\n"),
        (["python", "-m"], "False\n"),
    ]:
        command = [sys.executable, "-c", script.format(words=words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == expected, done.stderr
