"""Worker processes of this machine, as an executor.

The standard library's process pool gives up all its work when one process dies, starts children that import the main
script again, and cannot be told to stop at once. Here each worker is a process of its own with a pipe: when one dies,
only its own task fails, with `WorkerDied`, and the next task starts a new one; when this process dies, however it
dies, the workers see their pipe close and end.

A thread for each worker waits for its answers. A task goes to a worker that has nothing to do from where it is
submitted, and from the worker's thread if it had to wait: a thread that is to wake up first may wait for a core.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

from airloom import interpreter, standard_files
from airloom.sweep.forked import Forked, can_fork, copies
from airloom.sweep.ledger import Ledger
from airloom.sweep.worker import receive, send

#: So many octets an empty pipe takes at once (pipe(7) says 65,536).
_FITS = 60_000


class WorkerDied(Exception):
    """The worker process ended in the middle of a task: killed, or out of memory."""


class _Call(NamedTuple):
    """A task as it is sent."""

    future: Future[Any]
    octets: bytes


class _Begun(NamedTuple):
    """A task that a worker has, or why it has not."""

    future: Future[Any]
    failure: WorkerDied | None


class Processes(Executor):
    """`workers` processes; tasks start in the order in which they were submitted."""

    def __init__(self, workers: int, *, pinned: bool = False) -> None:
        """The processes start at once, and get ready while the caller does too. `pinned`: each to a core of its own."""
        self._lock = threading.Lock()
        #: Tasks that wait for a worker, and workers that wait for a task: one of them is empty.
        self._waiting: deque[_Call] = deque()
        self._idle: deque[_Worker] = deque()
        self._closed = False
        standard_files.open_missing()  # before pipes get their numbers
        #: Where the workers take runs.
        self.ledger = Ledger()
        cores = sorted(os.sched_getaffinity(0))
        # All copies are made before the first thread is. Emulated runs change much in a process: theirs are new ones.
        forked = copies(workers, self.ledger.fd) if can_fork() and not pinned else [None] * workers
        # As many workers as cores: none should begin where another one is at work. With fewer the kernel finds a core.
        has_core = pinned or workers == len(cores)
        self._workers = [
            _Worker(self.next_for, self.ledger, process, cores[n % len(cores)] if has_core else None, pinned)
            for n, process in enumerate(forked)
        ]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Has a worker call `fn`, which must be importable there."""
        call = _Call(Future(), pickle.dumps((fn, args, kwargs), protocol=5))
        with self._lock:
            if self._closed:
                raise RuntimeError("no task can be given to processes that were shut down")
            if self._idle:
                self._pick().give(call)
            else:
                self._waiting.append(call)
        return call.future

    def _pick(self) -> _Worker:
        """An idle worker; last the one whose core we have ourselves now, since it would take it from us."""
        own = _own_core() if len(self._idle) > 1 else None
        picked = next((worker for worker in self._idle if worker.core != own), self._idle[0])
        self._idle.remove(picked)
        return picked

    def next_for(self, worker: _Worker) -> _Call | None:
        """For a worker that has nothing to do: a task that waits. If there is none, it is given one when it comes."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(worker)
            return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the workers after their tasks; with `cancel_futures`, at once."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                for call in self._waiting:
                    call.future.cancel()
                self._waiting.clear()
        for worker in self._workers:
            if cancel_futures:
                worker.kill()
            worker.give(None)
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
        next_for: Callable[[_Worker], _Call | None],
        ledger: Ledger,
        process: subprocess.Popen[bytes] | Forked | None,
        core: int | None,
        is_pinned: bool,
    ) -> None:
        """`core`: where its tasks begin; if it `is_pinned`, it never leaves that."""
        super().__init__(name="airloom-worker", daemon=True)
        self._next_for = next_for
        #: Tasks that are its own; `None`: there will be no more.
        self._given: queue.SimpleQueue[_Call | _Begun | None] = queue.SimpleQueue()
        self._ledger = ledger
        self.core = core
        self._is_pinned = is_pinned
        self._killed = False
        self.process = process
        self.start()

    def run(self) -> None:
        if self.process is None:
            with contextlib.suppress(OSError):  # the first task tries again, and says what is wrong
                self.process = self._spawn()
        task = self._begin_next() or self._wait()
        while task is not None:
            answer = task.failure or self._answer()
            future = task.future
            try:
                # The process goes on before anybody hears of what it gave: people take their time.
                task = self._begin_next()
            finally:
                _settle(future, answer)
            task = task or self._wait()
        self._reap()

    def give(self, call: _Call | None) -> None:
        """A task that nobody knows of yet for a worker that waits for one; or `None`, there will be no more."""
        if call is not None:
            call.future.set_running_or_notify_cancel()
            if self.process is not None and self.process.poll() is None and len(call.octets) <= _FITS:
                self._given.put(self._begin(call))
                return
        self._given.put(call)  # to start a process, or to wait until it reads, takes time

    def kill(self) -> None:
        self._killed = True
        self.kill_process()

    def kill_process(self) -> None:
        if (process := self.process) is not None:
            process.kill()

    def _begin_next(self) -> _Begun | None:
        """Begins a task that waits, if there is one; else it is given one later."""
        while (call := self._next_for(self)) is not None:
            if call.future.set_running_or_notify_cancel():
                return self._begin(call)
        return None

    def _wait(self) -> _Begun | None:
        given = self._given.get()
        return self._begin(given) if isinstance(given, _Call) else given

    def _begin(self, call: _Call) -> _Begun:
        return _Begun(call.future, self._failure(call))

    def _failure(self, call: _Call) -> WorkerDied | None:
        """Sends a task; why that failed, if it did."""
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
            self._send(call.octets)
        except Exception as error:
            return self._died(error)
        return None

    def _send(self, call: bytes) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        if self.core is None or self._is_pinned:
            send(self.process.stdin, call)
            return
        # It wakes up on its core. Left to itself the kernel may put two that wake together on one core, and takes some
        # milliseconds to notice.
        everywhere = os.sched_getaffinity(0)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self.process.pid, {self.core})
        send(self.process.stdin, call)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self.process.pid, everywhere)

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
            interpreter.python("-c", code),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[self._ledger.fd],
        )
        if self._is_pinned and self.core is not None:
            os.sched_setaffinity(process.pid, {self.core})
        return process

    def _reap(self) -> str:
        """Closes its pipes, which ends it, and waits until it is gone; how it ended."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        code = process.wait()
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _own_core() -> int:
    """Where this thread runs now (proc(5), `processor`); -1 if nobody says."""
    try:
        with open("/proc/thread-self/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[36])
    except OSError:
        return -1


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
