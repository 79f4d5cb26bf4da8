"""Runs a target under atheris, with libFuzzer's words behind it; alone, it lists the targets.

run.py TARGET [CORPUS ...] [-runs=N ...]
"""

import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["airloom", "targets", "trees", "tomllib", "json", "http", "email"]):
    import targets

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("\n".join(targets.TARGETS))
    else:
        atheris.Setup([sys.argv[0], *sys.argv[2:]], targets.TARGETS[sys.argv[1]])
        atheris.Fuzz()
