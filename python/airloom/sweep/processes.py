"""Worker processes of this machine, as an executor.

The standard library's process pool gives up all its work when one process dies, starts children that import the main
script again, and cannot be told to stop at once. Here each worker is a process of its own with a pipe: when one dies,
only its own task fails, with `WorkerDied`, and the next task starts a new one; when this process dies, however it
dies, the workers see their pipe close and end.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from airloom import standard_files
from airloom.sweep.forked import Forked, can_fork, copies
from airloom.sweep.ledger import Ledger
from airloom.sweep.worker import receive, send


class WorkerDied(Exception):
    """The worker process ended in the middle of a task: killed, or out of memory."""


class Processes(Executor):
    """`workers` processes; tasks start in the order in which they were submitted."""

    def __init__(self, workers: int, *, pinned: bool = False) -> None:
        """The processes start at once, and get ready while the caller does too. `pinned`: each to a core of its own."""
        self._tasks: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._closed = False
        standard_files.open_missing()  # before pipes get their numbers
        #: Where the workers take runs.
        self.ledger = Ledger()
        cores = sorted(os.sched_getaffinity(0)) if pinned else []
        # All copies are made before the first thread is. Emulated runs change much in a process: theirs are new ones.
        forked = copies(workers, self.ledger.fd) if can_fork() and not pinned else [None] * workers
        self._workers = [
            _Worker(self._tasks, self.ledger, cores[n % len(cores)] if cores else None, process)
            for n, process in enumerate(forked)
        ]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Has a worker call `fn`, which must be importable there."""
        if self._closed:
            raise RuntimeError("no task can be given to processes that were shut down")
        future: Future[Any] = Future()
        self._tasks.put((future, pickle.dumps((fn, args, kwargs), protocol=5)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the workers after their tasks; with `cancel_futures`, at once."""
        self._closed = True
        if cancel_futures:
            while True:
                try:
                    task = self._tasks.get_nowait()
                except queue.Empty:
                    break
                if task is not None:
                    task[0].cancel()
            for worker in self._workers:
                worker.kill()
        for _ in self._workers:
            self._tasks.put(None)
        if wait:
            for worker in self._workers:
                worker.join()
            self.ledger.close()

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that run now."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]


class _Worker(threading.Thread):
    """Feeds one process."""

    def __init__(
        self,
        tasks: queue.SimpleQueue[tuple[Future[Any], bytes] | None],
        ledger: Ledger,
        core: int | None,
        process: subprocess.Popen[bytes] | Forked | None,
    ) -> None:
        super().__init__(name="airloom-worker", daemon=True)
        self._tasks = tasks
        self._ledger = ledger
        self._core = core
        self._killed = False
        self._over = False
        self.process = process
        self.start()

    def run(self) -> None:
        if self.process is None:
            with contextlib.suppress(OSError):  # the first task tries again, and says what is wrong
                self.process = self._spawn()
        task = self._begin_next(wait=True)
        while task is not None:
            future, failure = task
            answer = failure or self._answer()
            try:
                # The process goes on before anybody hears of what it gave: people take their time.
                task = self._begin_next(wait=False)
            finally:
                _settle(future, answer)
            task = task or self._begin_next(wait=True)
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self._reap()

    def kill(self) -> None:
        self._killed = True
        self.kill_process()

    def kill_process(self) -> None:
        if (process := self.process) is not None:
            process.kill()

    def _begin_next(self, *, wait: bool) -> tuple[Future[Any], WorkerDied | None] | None:
        """Begins the next task: its future, and why it failed, if it did already. `None` if there is none."""
        while not self._over:
            try:
                task = self._tasks.get(block=wait)
            except queue.Empty:
                break
            if task is None:
                self._over = True
            elif task[0].set_running_or_notify_cancel():
                return task[0], self._begin(task[1])
        return None

    def _begin(self, call: bytes) -> WorkerDied | None:
        try:
            # A process that died while idle harmed no task: it is replaced, and its end is not this task's.
            if self.process is not None and self.process.poll() is not None:
                self._reap()
            if self._killed:
                raise WorkerDied("stopped")
            if self.process is None:
                self.process = self._spawn()
                if self._killed:
                    raise WorkerDied("stopped")
            assert self.process.stdin is not None
            send(self.process.stdin, call)
        except Exception as error:
            return self._died(error)
        return None

    def _answer(self) -> bytes | WorkerDied:
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            return receive(self.process.stdout)
        except Exception as error:  # also an answer that our memory has no room for
            return self._died(error)

    def _died(self, error: Exception) -> WorkerDied:
        if not isinstance(error, EOFError | OSError):
            self.kill_process()
        return WorkerDied(f"worker process ended: {self._reap() or error}")

    def _spawn(self) -> subprocess.Popen[bytes]:
        package = str(Path(__file__).parent.parent.parent)
        code = f"import sys; sys.path.insert(0, {package!r}); from airloom.sweep.worker import serve; serve()"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[self._ledger.fd],
        )
        if self._core is not None:
            os.sched_setaffinity(process.pid, {self._core})
        return process

    def _reap(self) -> str:
        """Waits for the process to be gone; how it ended."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        code = process.wait()
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _settle(future: Future[Any], answer: bytes | WorkerDied) -> None:
    if isinstance(answer, WorkerDied):
        future.set_exception(answer)
        return
    try:
        is_good, value = pickle.loads(answer)
    except BaseException as error:  # what a task returned could not be read: the task's failure, not ours
        future.set_exception(error)
        return
    if is_good:
        future.set_result(value)
    else:
        future.set_exception(value)
