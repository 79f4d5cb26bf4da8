"""What a sweep and the table of its results hold does not grow with its runs."""

import subprocess
import sys
from pathlib import Path

from tests.sweep.conftest import FETCH

#: Makes so many runs and their table, and prints the most memory that it had in kB, after the one and the other.
SWEEP = """\
import sys
from airloom.scenario import load
from airloom.sweep import overview
def most():
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
seeds = int(sys.argv[1])
results = load("echo.toml").sweep({}, seeds=f"1..{seeds}").run(out=f"of-{seeds}", workers=1)
made = most()
overview.overview(results, overview.measures(results, None))
print(made, most())
"""

#: Ten thousand are made in a second.
ECHO = FETCH.replace('{ app = { http-client = { pages = [["/5kB"]] } } }', "{ app = { ping = { count = 1 } } }")


def test_fifty_thousand_more_runs_take_no_more_memory_and_their_table_a_few_columns(tmp_path: Path) -> None:
    (tmp_path / "echo.toml").write_text(ECHO)
    few, many = (
        [int(size) for size in subprocess.check_output(words, cwd=tmp_path).split()]
        for words in ([sys.executable, "-c", SWEEP, str(count)] for count in (10_000, 60_000))
    )
    made, shown = (after - before for before, after in zip(few, many, strict=True))
    # A part, or a group of rows, is in memory at a time: how large those of a smaller sweep are the machine's speed
    # decides (3 to 13 MB so far). A summary that was kept, or read again, has about 1 kB.
    assert made < 20_000, f"{few} kB for 10,000 runs, {many} kB for 60,000"
    # The columns that are shown, one after the other: 10 MB so far.
    assert shown < 25_000, f"{few} kB for 10,000 runs, {many} kB for 60,000"
