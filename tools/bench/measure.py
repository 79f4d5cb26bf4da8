"""What one process costs: CPU seconds, peak memory, instructions."""

import os
import re
import shutil
import statistics
import subprocess
from dataclasses import dataclass


@dataclass
class Cost:
    """What several runs of one command cost."""

    cpu_s: list[float]
    peak_mib: float | None
    output: str

    @property
    def median(self) -> float:
        return statistics.median(self.cpu_s)


class Failed(Exception):
    """A measured command did not end well."""


def once(command: list[str]) -> tuple[float, str]:
    """CPU seconds (user and system) of the whole process, and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {process.returncode}\n{output}")
    return usage.ru_utime + usage.ru_stime, output


def peak_mib(command: list[str]) -> float | None:
    """Largest resident set in MiB; None without GNU time.

    A small process has to start the command: the peak of a child begins with that of whoever started it.
    """
    time = shutil.which("time", path="/usr/bin:/bin:/usr/local/bin")
    if time is None:
        return None
    result = subprocess.run([time, "-f", "peak=%M", *command], capture_output=True, text=True, check=False)
    found = re.search(r"peak=(\d+)", result.stderr)
    return int(found[1]) / 1024 if found else None


def cost(command: list[str], count: int, with_peak: bool = True) -> Cost:
    """`count` runs of a command; one more for its peak of memory if asked for."""
    runs = [once(command) for _ in range(count)]
    return Cost([cpu for cpu, _ in runs], peak_mib(command) if with_peak else None, runs[-1][1].strip())


def instructions(command: list[str]) -> int | None:
    """Instructions of one run as callgrind counts them; None without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    tool = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    result = subprocess.run([*tool, *command], capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
    if result.returncode != 0 or found is None:
        raise Failed(f"valgrind {' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return int(found[1])
