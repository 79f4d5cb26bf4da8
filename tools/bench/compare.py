"""Compares two builds of the yardsticks run by run: `python -m tools.bench.compare OLD NEW`.

On a machine whose speed changes, CPU seconds say little by themselves; the ratio of two runs right after each other
says which build is faster, and by how much.
"""

import argparse
import statistics

from tools.bench.measure import cost

#: Arguments of the yardsticks, and how many pairs of runs.
SCENARIOS = {
    "a": (["a"], 15),
    "b, 1,000 seeds": (["b", "1000"], 3),
    "c": (["c"], 15),
    "d": (["d"], 5),
    "RLC AM": (["rlc", "2000"], 7),
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.compare", description=__doc__)
    parser.add_argument("old", help="a build of crates/drive/examples/yardsticks.rs")
    parser.add_argument("new", help="another one")
    chosen = parser.parse_args()
    for name, (arguments, count) in SCENARIOS.items():
        pairs = [
            tuple(cost([program, *arguments], 1).median for program in (chosen.old, chosen.new)) for _ in range(count)
        ]
        old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratios = sorted(new / old for old, new in pairs)
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, {count} pairs"
        print(f"{name:<15} {old:.4f} s -> {new:.4f} s: {statistics.median(ratios):.3f} ({spread})", flush=True)


if __name__ == "__main__":
    main()
