"""What a sweep and the table of its results hold does not grow with its runs."""

import subprocess
import sys
from pathlib import Path

from tests.sweep.conftest import FETCH

#: Makes so many runs and prints the most memory that it had, in kB.
SWEEP = """\
import sys
from airloom.scenario import load
from airloom.sweep import overview
seeds = int(sys.argv[1])
results = load("echo.toml").sweep({}, seeds=f"1..{seeds}").run(out=f"of-{seeds}", workers=1)
overview.overview(results, overview.measures(results, None))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""

#: Ten thousand are made in a second.
ECHO = FETCH.replace('{ app = { http-client = { pages = [["/5kB"]] } } }', "{ app = { ping = { count = 1 } } }")


def test_fifty_thousand_more_runs_take_a_few_megabytes_more(tmp_path: Path) -> None:
    (tmp_path / "echo.toml").write_text(ECHO)
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", SWEEP, str(count)], cwd=tmp_path))
        for count in (10_000, 60_000)
    )
    # What grows is the columns that are shown, up to 0.2 kB for each run; all else is a part, or a stretch of rows, at
    # a time, and how large those are the machine's speed decides (3 to 15 MB so far). A summary that was kept, or read
    # again, has about 1 kB.
    assert many - few < 30_000, f"{few} kB for 10,000 runs, {many} kB for 60,000"
