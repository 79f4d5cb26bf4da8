"""Where the groups of a sweep run: one seam, `concurrent.futures.Executor`.

`local` are processes of this machine; `dask://HOST:PORT` and `scheduler-file:PATH` are a Dask cluster, whose client
gives an executor too. Whoever has another executor hands it to `Sweep.run(executor=..)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from airloom.errors import RunError, Unsupported, UsageError
from airloom.sweep.ledger import Ledger
from airloom.sweep.processes import Processes

#: How long a Dask scheduler may take to answer, seconds.
_PATIENCE_S = 10.0


class Place(NamedTuple):
    """An executor, and how many tasks it can do at once (looked up again now and then: clusters grow)."""

    executor: Executor
    slots: Callable[[], int]
    #: For people: `2 processes`.
    name: str
    #: What a task should take at least, unless nothing more is left to do, and at most, in seconds.
    shortest_s: float = 0.5
    longest_s: float = 2.0
    #: Where the tasks take runs themselves, if they are of this machine; they find our files too, then.
    ledger: Ledger | None = None
    #: Stops the tasks at once.
    stop: Callable[[], None] = lambda: None
    #: Does each worker have a task waiting beside it? Else one waits for whoever is free first.
    queues: bool = False


@contextmanager
def processes(workers: int | None, *, pinned: bool = False) -> Iterator[Place]:
    """Processes of this machine, as many as it has cores."""
    cores = len(os.sched_getaffinity(0))
    count = workers or cores
    if pinned and count > cores:
        raise UsageError(f"{count} workers, but emulated runs never share a core and there are {cores}")
    pool = Processes(count, pinned=pinned)
    stop = partial(pool.shutdown, cancel_futures=True)
    try:
        yield Place(
            pool,
            lambda: count,
            "1 process" if count == 1 else f"{count} processes",
            ledger=pool.ledger,
            stop=stop,
        )
    finally:
        # After a good end nothing is left to cancel; after Ctrl-C or an error nothing is to be waited for.
        stop()


@contextmanager
def given(executor: Executor, workers: int | None) -> Iterator[Place]:
    """An executor that the caller made and will shut down."""
    count = workers or getattr(executor, "_max_workers", None) or len(os.sched_getaffinity(0))
    yield Place(executor, lambda: count, type(executor).__name__)


@contextmanager
def on(address: str) -> Iterator[Place]:
    """A Dask cluster: `dask://HOST:PORT` or `scheduler-file:PATH`."""
    kind, _, rest = address.partition(":")
    if kind not in ("dask", "scheduler-file") or not rest.strip("/"):
        raise UsageError(f"--on {address}: expected dask://HOST:PORT or scheduler-file:PATH")
    try:
        from distributed import Client
    except ImportError:
        raise Unsupported("--on needs Dask, which is not installed: pip install 'airloom[cluster]'") from None
    client = _client(Client, address, kind, rest)
    try:
        # A task costs Dask some milliseconds, and a way to the scheduler and back: longer tasks keep the one below a
        # hundredth, and a task that is there already when its worker is free hides the other.
        executor = client.get_executor(pure=False)
        yield Place(executor, lambda: sum(client.nthreads().values()), address, shortest_s=1.0, queues=True)
    finally:
        client.close(timeout=2)


def _client(make: Any, address: str, kind: str, rest: str) -> Any:
    import logging

    # One line says it all; Dask's own lines about connections come on top of it otherwise.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        if kind == "scheduler-file":
            if not os.path.exists(rest):
                raise UsageError(f"--on {address}: there is no file {rest}: is the scheduler running?")
            client = make(scheduler_file=rest, timeout=_PATIENCE_S)
        else:
            client = make(f"tcp://{rest.removeprefix('//')}", timeout=_PATIENCE_S)
    except (OSError, TimeoutError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"--on {address}: no Dask scheduler answers there ({why}); is it running?") from None
    return client
