"""Worker processes that can be ended at once."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from airloom.errors import RunError
from airloom.validate.processes import Processes
from tests.conftest import until


def test_tasks_are_called_and_what_ends_a_process_is_that_tasks_failure() -> None:
    pool = Processes(2)
    many = [pool.submit(pow, n, 2) for n in range(50)]
    assert [task.result() for task in many] == [n * n for n in range(50)]
    assert pool.submit(len, bytes(300_000)).result() == 300_000, "more than a pipe takes at once"
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result()
    with pytest.raises(RunError, match=r"^a worker process ended with exit code 3$"):
        pool.submit(os._exit, 3).result()
    assert [pool.submit(abs, -n).result() for n in range(4)] == [0, 1, 2, 3]
    pids = [pool.submit(os.getpid).result() for _ in range(4)]
    pool.shutdown()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_what_is_under_way_is_not_waited_for() -> None:
    pool, begin = Processes(2), time.monotonic()
    tasks = [pool.submit(time.sleep, 1000) for _ in range(3)]
    while sum(task.running() for task in tasks) < 2:
        time.sleep(0.01)
    pool.shutdown(cancel_futures=True)
    assert time.monotonic() - begin < 60
    assert tasks[2].cancelled()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_without_standard_files_has_workers_too(closed: str) -> None:
    # What a worker prints goes to its stderr; that must not be the pipe or file that happens to have this number.
    code = """
import os
from airloom.validate.processes import Processes
pool = Processes(2)
good = pool.submit(os.path.realpath, "/proc/self/fd/2").result() == os.path.realpath("/proc/self/fd/2")
good = good and pool.submit(os.system, "echo noise; echo noise >&2").result() == 0
pool.shutdown()
os._exit(0 if good else 1)
"""
    done = subprocess.run(["sh", "-c", f"{shlex.join([sys.executable, '-c', code])} {closed}"], check=False)
    assert done.returncode == 0


def test_workers_end_with_the_process_they_work_for() -> None:
    code = """
import os, time
from airloom.validate.processes import Processes
pool = Processes(2)
print(pool.submit(os.getpid).result(), flush=True)
pool.submit(time.sleep, 1000)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    until(lambda: not os.path.exists(f"/proc/{int(ended.stdout)}"))
