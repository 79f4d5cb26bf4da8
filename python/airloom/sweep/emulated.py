"""Runs in real time within a sweep: one after the other on a core that nothing else of ours uses meanwhile."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airloom import interpreter
from airloom._core import Part
from airloom.runtime_folder import open_lock
from airloom.sweep.layout import run_folder
from airloom.sweep.work import Group, Job, OneByOne, Variant


class Emulated(OneByOne):
    """Emulates the runs of a group, each in a process of its own: as `airloom emulate`, which needs no root."""

    clock = "real"

    def __init__(self, group: Group) -> None:
        """Each thread has a core of its own."""
        super().__init__(group)
        self._cores = sorted(os.sched_getaffinity(0))
        self._under_way: set[subprocess.Popen[str]] = set()

    def stop(self) -> None:
        """See `OneByOne`."""
        super().stop()
        for process in list(self._under_way):
            process.terminate()

    def _make(self, thread: int, job: Job, seed: int) -> tuple[Part, int]:
        with _core_alone(self._cores[thread % len(self._cores)]):
            start = time.perf_counter_ns()
            error, summary = self._emulate(job.variant, job.point, seed)
            took_ns = time.perf_counter_ns() - start
        if self._stopped.is_set():
            raise InterruptedError
        return self._part(job, seed, error, summary), took_ns

    def _emulate(self, variant: Variant, point: int, seed: int) -> tuple[str | None, dict[str, float]]:
        with tempfile.TemporaryDirectory(prefix="airloom-") as folder:
            file = Path(folder) / Path(variant.file).with_suffix(".toml").name
            file.write_bytes(variant.text)
            words = interpreter.airloom("emulate", str(file), "--json", "--seed", str(seed))
            words += ["--out", str(run_folder(self._place, point, seed)), "--force"]
            words += [word for key, value in variant.settings for word in ("--set", f"{key}={value}")]
            words += [word for host in variant.real for word in ("--real", host)]
            words += ["--", *(self._group.command or ("true",))]
            code, said, noise = self._carry_out(words)
        try:
            result = json.loads(said)
        except ValueError:
            lines = [line for line in noise.splitlines() if line.startswith("airloom: ")] or noise.splitlines()
            why = lines[-1].removeprefix("airloom: ") if lines else "no word why"
            return f"emulation failed (exit code {code}): {why}", {}
        summary = {key: float(value) for key, value in result["summary"].items()}
        if result["exit_code"] != 0:
            return f"the command ended with exit code {result['exit_code']}", summary
        if not result["valid"]:
            return "not valid: packets left the model too late, or were lost outside of it", summary
        return None, summary

    def _carry_out(self, words: list[str]) -> tuple[int, str, str]:
        """Exit code, stdout and stderr. Ctrl-C in the terminal reaches it through `stop`."""
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        # Whatever octets the command writes.
        with subprocess.Popen(
            words, stdin=nothing, stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
        ) as process:
            self._under_way.add(process)
            try:
                if self._stopped.is_set():
                    process.terminate()
                said, noise = process.communicate()
            finally:
                self._under_way.discard(process)
        return process.returncode, said, noise


@contextmanager
def _core_alone(core: int) -> Iterator[None]:
    """Binds this thread, and what it starts, to a core; it waits for this user's other sweeps that have the same."""
    os.sched_setaffinity(0, {core})
    lock = open_lock(f"core-{core}.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
