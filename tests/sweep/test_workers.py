"""Worker processes: copies of this process where that is safe, new interpreters elsewhere."""

import shlex
import subprocess
import sys
import time

import pytest

from tests.sweep.conftest import is_running

CODE = """
import os, signal, threading, time
from airloom.sweep.forked import Forked
from airloom.sweep.processes import Processes, WorkerDied

if THREADED:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
pool = Processes(2)
assert all(isinstance(worker.process, Forked) != THREADED for worker in pool._workers)
assert [pool.submit(divmod, n, 3).result() for n in (7, 8)] == [(2, 1), (2, 2)]
many = [pool.submit(pow, n, 2) for n in range(50)]
assert [task.result() for task in many] == [n * n for n in range(50)]
# More than a pipe takes at once, for workers that wait and for those that are busy.
large = [pool.submit(len, bytes(300_000 + n)) for n in range(4)]
assert [task.result() for task in large] == list(range(300_000, 300_004))
assert all(os.sched_getaffinity(pid) == os.sched_getaffinity(0) for pid in pool.pids), "it may go where it likes"
busy = [pool.submit(time.sleep, 0.2) for _ in range(2)]
waiting = pool.submit(abs, -1)
assert waiting.cancel() or waiting.done()
assert [task.result() for task in busy] == [None, None]
try:
    pool.submit(divmod, 1, 0).result()
except ZeroDivisionError as error:
    print(type(error).__name__)
dying = pool.submit(os._exit, 3)
try:
    dying.result()
except WorkerDied as error:
    print(error)
print([pool.submit(abs, -n).result() for n in range(4)])
os.kill(pool.pids[0], signal.SIGKILL)
pids = pool.pids
alive = next(worker.process for worker in pool._workers if worker.process is not None)
alive.stdin.write(b"half a task, when Ctrl-C came")
pool.shutdown()
pool.shutdown(cancel_futures=True)
try:
    pool.submit(abs, -1)
except RuntimeError as error:
    assert "shut down" in str(error)
else:
    raise AssertionError("a pool that was shut down takes no task")
assert not [name for name in os.listdir("/proc/self/fd") if "airloom" in os.path.realpath(f"/proc/self/fd/{name}")]
# One or two: the worker that died is replaced when it gets a task.
print([pid for pid in pids if os.path.exists(f"/proc/{pid}")])
"""


def serve(threaded: bool) -> list[str]:
    code = CODE.replace("THREADED", str(threaded))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_copies_serve_as_new_interpreters_do() -> None:
    lines = serve(threaded=False)
    assert lines == ["ZeroDivisionError", "worker process ended: with exit code 3", "[0, 1, 2, 3]", "[]"]
    assert serve(threaded=True) == lines


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("threaded", [False, True])
def test_a_program_without_standard_files_has_workers_too(closed: str, threaded: bool) -> None:
    # What a worker prints goes to its stderr; that must not be the pipe or file that happens to have this number.
    code = """
import os, threading
if THREADED:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
from airloom.sweep.processes import Processes
pool = Processes(2)
good = pool.submit(os.path.realpath, "/proc/self/fd/2").result() == os.path.realpath("/proc/self/fd/2")
good = good and pool.submit(os.system, "echo noise; echo noise >&2").result() == 0
pool.shutdown()
os._exit(0 if good else 1)
"""
    words = shlex.join([sys.executable, "-c", code.replace("THREADED", str(threaded))])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], check=False, timeout=120)
    assert done.returncode == 0


def test_a_copy_ends_with_the_process_it_was_made_from() -> None:
    code = """
import os, sys
from airloom.sweep.processes import Processes
pool = Processes(3)
print(*pool.pids, flush=True)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    # The pipe to here is the parent's own: that it closed says that no copy holds it.
    assert ended.returncode == -9
    assert len(ended.stdout.split()) == 3
    until = time.monotonic() + 30
    while any(is_running(int(pid)) for pid in ended.stdout.split()):
        assert time.monotonic() < until, "a worker is still there"
        time.sleep(0.05)
