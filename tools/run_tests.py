"""Runs every test, Rust and Python, and prints the number of skipped ones last.

The random tests draw the same cases every time: the verdict on a commit does not change from one run to the next. Fresh
cases, and many more of them, are `make nightly`'s (and a bare `cargo test`'s).

Python's come first: their laboratories mostly wait, and Rust's tests are compiled in the meantime, with what they leave
of the processors. They are run afterwards, since some of them look at the clock, too: the programs of `airloom-drive`
one after the other, that which waits for its peers beside them, and all others standing back.

With `AIRLOOM_CI=1` a skipped or ignored test is a failure: the machine that judges has all peers installed.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RUST = ["cargo", "test", "--workspace", "--exclude", "airloom-fuzz"]

#: Of `airloom-drive`: half of the time of all the others, in which it mostly waits.
WAITS = "sctp_peers"

#: A Rust test cannot say that it was skipped: one that misses a peer or a right says so in a line of its own, by
#: `airloom_testkit::skip`.
SKIPPED = re.compile(r"SKIPPED ([\w-]+/\S+: .*)")

#: Of pytest. Laboratories mostly wait: two workers more than processors keep those busy.
WORKERS = (os.cpu_count() or 1) + 2


def run(command: list[str]) -> tuple[int, str, float]:
    """Runs a command, shows its output as it comes, and returns exit code, output and seconds."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    return process.wait(), "".join(lines), time.monotonic() - start


class Job(NamedTuple):
    """A program of Rust's tests."""

    command: list[str]
    #: That of its package.
    folder: Path

    def run(self) -> tuple[int, str]:
        """Its exit code and what it printed, which is shown when it has ended."""
        start = time.monotonic()
        done = subprocess.run(
            self.command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        took = time.monotonic() - start
        sys.stdout.write(f"{self.folder.name}: {' '.join(self.command)}, {took:.1f} s\n{done.stdout}\n")
        sys.stdout.flush()
        return done.returncode, done.stdout


def compiled() -> list[Job]:
    """The programs of Rust's tests; raises `CalledProcessError` if they cannot be compiled, which is said by then."""
    command = [*RUST, "--no-run", "--message-format", "json-render-diagnostics"]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    artifacts = [m for m in map(json.loads, said.splitlines()) if m["reason"] == "compiler-artifact"]
    tests = [each for each in artifacts if each["executable"] and each["profile"]["test"]]
    return [Job([each["executable"]], Path(each["manifest_path"]).parent) for each in tests]


def run_rust() -> tuple[int, str, float]:
    """Runs Rust's tests and returns exit code, output and seconds."""
    start = time.monotonic()
    try:
        jobs = compiled()
    except subprocess.CalledProcessError as error:
        return error.returncode, "", time.monotonic() - start
    drive = [job for job in jobs if job.folder.name == "drive"]
    waiting = [job for job in drive if Path(job.command[0]).name.startswith(WAITS)]
    watched = [job for job in drive if job not in waiting]
    back = ["nice", "-n", "19"]
    others = [job._replace(command=[*back, *job.command]) for job in jobs if job not in drive]
    # Of all tests those in documentation alone have a line in their names. Said this way nothing is compiled anew.
    others.append(Job([*back, *RUST, "--no-fail-fast", "--", "(line"], ROOT))
    lanes = (watched, waiting, others)
    with contextlib.ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in lanes]
        begun = [pool.submit(job.run) for pool, lane in zip(pools, lanes, strict=True) for job in lane]
        try:
            results = [each.result() for each in begun]
        except BaseException:
            for each in begun:
                each.cancel()
            raise
    return int(any(code for code, _ in results)), "".join(text for _, text in results), time.monotonic() - start


def idle() -> None:
    """Puts the process that is begun, first of a session, into the class `SCHED_IDLE`."""
    if not hasattr(os, "SCHED_IDLE"):
        return  # not Linux
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _session_stands_back(19)


def nicer() -> None:
    """Lets others go before the process that is begun, first of a session; it goes before those of `idle`."""
    os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
    _session_stands_back(10)


def _session_stands_back(nice: int) -> None:
    # Class and nice value count among the processes of a session only; sessions have their own (sched(7), autogroup).
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(nice))


@contextlib.contextmanager
def beside(command: list[str]) -> Iterator[None]:
    """Runs a command silently beside the block, with the processor time that is left over, and waits for it."""

    null = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=null, stdout=null, stderr=null, start_new_session=True, preexec_fn=idle
    )
    try:
        yield
        process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise


def main() -> int:
    strict = os.environ.get("AIRLOOM_CI") == "1"
    os.environ.setdefault("PROPTEST_RNG_SEED", "1")
    # Where it is set, each of some thousand processes compiles the package and its tests anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with beside([*RUST, "--no-run"]):
        python_code, python, python_seconds = run([sys.executable, "-m", "pytest", "-n", str(WORKERS)])
    rust_code, rust, rust_seconds = run_rust()
    results = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", rust)
    passed, failed, ignored = (sum(int(r[i]) for r in results) for i in range(3))

    missing = SKIPPED.findall(rust)

    closing = python.rstrip().rsplit("\n", 1)[-1]

    def count(word: str) -> int:
        found = re.search(rf"(\d+) {word}", closing)
        return int(found.group(1)) if found else 0

    skipped = count("skipped") + count("xfailed")

    print()
    verdict = "ok" if rust_code == 0 else "FAILED"
    print(f"rust:    {verdict}, {passed} passed, {failed} failed, {rust_seconds:.0f} s")
    verdict = "ok" if python_code == 0 else "FAILED"
    print(f"python:  {verdict}, {count('passed')} passed, {count('failed')} failed, {python_seconds:.0f} s")
    for reason in missing:
        print(f"  skipped: {reason}")
    for reason in sorted(set(re.findall(r"^SKIPPED \[\d+\] (.*)$", python, re.MULTILINE))):
        print(f"  skipped: {reason}")
    ignored += len(missing)
    print(f"skipped: {ignored + skipped} (Rust {ignored}, Python {skipped})")

    if rust_code != 0 or python_code != 0:
        return 1
    if passed == 0 or count("passed") == 0:
        print("no test ran", file=sys.stderr)
        return 1
    if strict and ignored + skipped > 0:
        print("a skipped test is a failure here: `tools/peers test` installs what is missing", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
