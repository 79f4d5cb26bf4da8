"""Runs every test, Rust and Python, and prints the number of skipped ones last.

The random tests draw the same cases every time: the verdict on a commit does not change from one run to the next. Fresh
cases, and many more of them, are `make nightly`'s (and a bare `cargo test`'s).

Python's come first: their laboratories mostly wait, and Rust's tests are compiled in the meantime, with what they leave
of the processors. They are run afterwards, since some of them look at the clock, too.

With `AIRLOOM_CI=1` a skipped or ignored test is a failure: the machine that judges has all peers installed.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUST = ["cargo", "test", "--workspace", "--exclude", "airloom-fuzz"]


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


@contextlib.contextmanager
def beside(command: list[str]) -> Iterator[None]:
    """Runs a command silently beside the block, with the processor time that is left over, and waits for it."""

    def idle() -> None:
        if not hasattr(os, "SCHED_IDLE"):
            return  # not Linux
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        # That counts among the processes of a session only; the sessions, too, count differently (sched(7), autogroup).
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text("19")

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
    with beside([*RUST, "--no-run"]):
        python_code, python, python_seconds = run([sys.executable, "-m", "pytest", "-n", "auto"])
    # What cannot be compiled says so now.
    rust_code, rust, rust_seconds = run([*RUST, "--no-fail-fast"])
    results = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", rust)
    passed, failed, ignored = (sum(int(r[i]) for r in results) for i in range(3))

    # A Rust test cannot say that it was skipped: one that misses a peer or a right says so in a line of its own.
    missing = re.findall(r"SKIPPED ([\w-]+/\S+: .*)", rust)

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
