"""The measurements of a comparison: made beside each other, each once, and kept as they come.

Each is made by a worker process, since what goes on in a laboratory cannot be stopped from outside; a process can, and
its laboratory ends with it. So Ctrl-C takes no longer than that, and what was made by then is kept.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from airloom.validate.kept import Kept

T = TypeVar("T")

#: Told how many measurements are done, and which share of all the work that is.
Progress = Callable[[int, float], None]


#: How long nobody may hear of a signal.
_STEP_S = 0.2


class Task(NamedTuple, Generic[T]):
    """One of them."""

    name: str
    #: How much work it is, compared with the others.
    weight: float
    #: Can be sent to another process, as what it gives can.
    make: Callable[[], T]


def carry_out(
    tasks: Sequence[Task[T]],
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    kept: Kept[T] | None = None,
    progress: Progress = lambda _done, _share: None,
) -> list[T]:
    """What all tasks gave, in their order; those that are `kept` are not made again."""
    found: dict[str, T] = dict(kept.found) if kept else {}
    whole = sum(task.weight for task in tasks)
    done = [task for task in tasks if task.name in found]
    spent = sum(task.weight for task in done)
    progress(len(done), spent / whole)
    missing = [task for task in tasks if task.name not in found]
    if not missing:
        return [found[task.name] for task in tasks]
    with _place(executor, jobs) as (where, folder):
        flying = {where.submit(_make, task.make, os.getpid(), folder): task for task in missing}
        try:
            for number, future in enumerate(_as_they_come(flying), len(done) + 1):
                task = flying[future]
                found[task.name] = future.result()
                if kept:
                    kept.keep(task.name, found[task.name])
                spent += task.weight
                progress(number, spent / whole)
        except BaseException:
            for future, task in flying.items():
                if kept and task.name not in kept.found and future.done() and not future.cancelled():
                    with suppress(BaseException):
                        kept.keep(task.name, future.result())
            raise
    return [found[task.name] for task in tasks]


def _as_they_come(flying: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """As `as_completed`, but in steps: a thread that waits without an end may not hear of a signal."""
    waiting = set(flying)
    while waiting:
        finished, waiting = wait(waiting, timeout=_STEP_S, return_when=FIRST_COMPLETED)
        yield from finished


@contextmanager
def _place(executor: Executor | None, jobs: int) -> Iterator[tuple[Executor, str | None]]:
    if executor is not None:
        yield executor, None
        return
    from airloom.validate.processes import Processes

    # What is killed takes nothing away: its temporary files lie in a folder of ours. Servers that become somebody else
    # look into theirs.
    with tempfile.TemporaryDirectory(prefix="airloom-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        pool = Processes(jobs)
        try:
            yield pool, folder
        finally:
            # After a good end nothing is left to cancel; after Ctrl-C or an error nothing is to be waited for.
            pool.shutdown(cancel_futures=True)


def _make(make: Callable[[], T], owner: int, folder: str | None) -> T:
    if folder is not None and os.getpid() != owner:
        tempfile.tempdir = folder
    return make()
