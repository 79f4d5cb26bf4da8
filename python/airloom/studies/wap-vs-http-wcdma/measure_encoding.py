"""What encoding takes on this machine: the decks of 4.1 and the headers of 4.2. Prints seconds as JSON.

One core, each number the mean of a batch that takes some milliseconds; thirty batches, interleaved over what is
measured, so that a machine that grows slower for a while does so for all.
"""

import gc
import gzip
import json
import os
import sys
import time
from collections.abc import Callable

from wap_vs_http.decks import CONNECT_HEADERS, SIZES, deck

from airloom._core import wap_compile, wap_encode_headers, wap_parse

#: Batches of each.
REPEAT = 30

#: About how long a batch is, s.
BATCH = 0.004


def main() -> None:
    """Measures and prints."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    work: dict[str, Callable[[], object]] = {}
    for size in SIZES:
        for kind in ("prose", "rich"):
            text = deck(size, rich=kind == "rich")
            work[f"{kind} {size} encode"] = lambda text=text: wap_compile(text)  # type: ignore[misc]
            work[f"{kind} {size} parse"] = lambda text=text: wap_parse(text)  # type: ignore[misc]
            work[f"{kind} {size} gzip"] = lambda text=text: gzip.compress(text, 6, mtime=0)  # type: ignore[misc]
    headers = list(CONNECT_HEADERS)
    work["headers"] = lambda: wap_encode_headers(headers)
    counts = {name: max(1, round(BATCH / once(do, 1))) for name, do in work.items()}
    gc.disable()
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(REPEAT):
        for name, do in work.items():
            found[name].append(once(do, counts[name]))
    json.dump({"seconds": found}, sys.stdout)


def once(do: Callable[[], object], count: int) -> float:
    """Mean CPU time of `count` calls, s."""
    do()
    begin = time.process_time_ns()
    for _ in range(count):
        do()
    return max(1, time.process_time_ns() - begin) / 1e9 / count


if __name__ == "__main__":
    main()
