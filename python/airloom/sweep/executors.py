"""Where the runs of a sweep are made: on threads of this process, or by any `concurrent.futures.Executor`.

`dask://HOST:PORT` and `scheduler-file:PATH` are a Dask cluster, whose client gives an executor too. Whoever has another
executor hands it to `Sweep.run(executor=..)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from airloom.errors import RunError, Unsupported, UsageError

#: How long a Dask scheduler may take to answer, seconds.
_PATIENCE_S = 10.0


class Place(NamedTuple):
    """Where, and how many runs are made there at once (looked up again now and then: clusters grow)."""

    #: `None`: on threads of this process.
    executor: Executor | None
    slots: Callable[[], int]
    #: For people: `2 threads`.
    name: str


def here(workers: int | None, *, alone: bool = False) -> nullcontext[Place]:
    """Threads of this process, as many as there are cores; `alone`: never more than that."""
    cores = len(os.sched_getaffinity(0))
    count = workers or cores
    if alone and count > cores:
        raise UsageError(f"{count} workers, but emulated runs never share a core and there are {cores}")
    return nullcontext(Place(None, lambda: count, "1 thread" if count == 1 else f"{count} threads"))


def given(executor: Executor, workers: int | None) -> nullcontext[Place]:
    """An executor that the caller made and will shut down."""
    count = workers or getattr(executor, "_max_workers", None) or len(os.sched_getaffinity(0))
    return nullcontext(Place(executor, lambda: count, type(executor).__name__))


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
        yield Place(client.get_executor(pure=False), lambda: sum(client.nthreads().values()), address)
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
