"""The end of the demo: the page of one seed, of a hundred, and by curl.

airloom python tools/demo_side_by_side.py FOLDER CURL: the folder of the demo, and what curl printed of each object.
"""

import statistics
import sys
from pathlib import Path

import airloom as al


def main(folder: Path, printed: Path) -> None:
    """Prints the three, and how many of the hundred were faster than curl."""
    one = al.Run(folder).summary["page_load_s"]
    seeds = sorted(al.SweepResults(folder / "seeds").runs["page_load_s"].to_list())
    rows = [line.split() for line in printed.read_text().splitlines()]
    octets, curl = sum(int(row[2]) for row in rows), sum(float(row[0]) for row in rows)
    tenths = statistics.quantiles(seeds, n=10)
    print(f"simulated, seed 1    {one:.2f} s")
    print(
        f"simulated, {len(seeds)} seeds  {statistics.median(seeds):.2f} s in the middle; "
        f"{tenths[0]:.2f} to {tenths[-1]:.2f} s for eight of ten, {seeds[0]:.2f} to {seeds[-1]:.2f} s for all"
    )
    faster = sum(seconds < curl for seconds in seeds)
    print(
        f"curl, {octets} octets  {curl:.2f} s: {faster} of {len(seeds)} seeds were faster, {len(seeds) - faster} slower"
    )
    if faster in (0, len(seeds)):
        print("curl lies outside of what the seeds span: this machine was late, or the model is wrong here")


main(Path(sys.argv[1]), Path(sys.argv[2]))
