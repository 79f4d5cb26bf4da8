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
from typing import Any

from airloom import interpreter
from airloom._core import Scenario
from airloom.runtime_folder import open_lock
from airloom.sweep import parts
from airloom.sweep.layout import run_folder
from airloom.sweep.share import Share
from airloom.sweep.work import Group, Variant


def emulate_all(group: Group, share: Share) -> dict[str, Any]:
    """Emulates runs of a group; the plain data of a part and `took_ns`, without tables of flows and the like."""
    done: dict[str, Any] = {name: [] for name in ("outcome", "error", "took_ns", "run_id", "rate")}
    summaries: list[dict[str, float]] = []
    for job, seed in share.runs():
        assert group.folders is not None, "an emulated run has a folder"
        with _core_alone():
            start = time.perf_counter_ns()
            error, summary = _emulate(job.variant, job.point, seed, group.command, Path(group.folders))
            took = time.perf_counter_ns() - start
        done["outcome"].append(None if error else "complete")
        done["error"].append(error)
        done["took_ns"].append(took)
        done["run_id"].append(_run_id(job.variant, seed))
        done["rate"].append(None)
        summaries.append(summary)
    return {**done, **parts.summaries(summaries), "tables": {}}


def _emulate(
    variant: Variant, point: int, seed: int, command: tuple[str, ...] | None, place: Path
) -> tuple[str | None, dict[str, float]]:
    """One run in a process of its own: as `airloom emulate`, so that it can enter namespaces without root."""
    with tempfile.TemporaryDirectory(prefix="airloom-") as folder:
        file = Path(folder) / Path(variant.file).with_suffix(".toml").name
        file.write_bytes(variant.text)
        words = interpreter.airloom("emulate", str(file), "--json", "--seed", str(seed))
        words += ["--out", str(run_folder(place, point, seed)), "--force"]
        words += [word for key, value in variant.settings for word in ("--set", f"{key}={value}")]
        words += [word for host in variant.real for word in ("--real", host)]
        words += ["--", *(command or ("true",))]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        said = [line for line in done.stderr.splitlines() if line.startswith("airloom: ")] or done.stderr.splitlines()
        why = said[-1].removeprefix("airloom: ") if said else "no word why"
        return f"emulation failed (exit code {done.returncode}): {why}", {}
    summary = {key: float(value) for key, value in result["summary"].items()}
    if result["exit_code"] != 0:
        return f"the command ended with exit code {result['exit_code']}", summary
    if not result["valid"]:
        return "not valid: packets left the model too late, or were lost outside of it", summary
    return None, summary


def _run_id(variant: Variant, seed: int) -> str:
    scenario = Scenario(variant.text, variant.file, list(variant.settings), list(variant.real))
    return scenario.with_seed(seed).run_id("real")


@contextmanager
def _core_alone() -> Iterator[None]:
    """Holds the core that this worker is bound to: workers of this user's other sweeps on the same core wait for it."""
    cores = sorted(os.sched_getaffinity(0))
    lock = open_lock(f"core-{cores[0]}.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
