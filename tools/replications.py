"""Makes docs/replications from the full runs that ship with the package.

    .venv/bin/python tools/replications.py [OPTION]

                     writes the pages
    --check          fails if a page is out of date, or a run is not one of today's claims
    --take NAME DIR  takes the full run in DIR (runs/studies/NAME/full) as the one that ships
    --same NAME DIR  fails if a verdict of the full run in DIR contradicts the one that ships

`make replications` is the first; CI has the second, `make nightly` the last.
"""

import argparse
import sys
from pathlib import Path

from airloom.errors import UsageError
from airloom.study import names, open_study, replication, shipping

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "replications"


def pages() -> dict[Path, str]:
    """What each page has to be."""
    shipped = [shipping.current(open_study(name)) for name in names()]
    found = {PAGES / "README.md": replication.index(shipped)}
    for each in shipped:
        folder = f"../../python/airloom/studies/{each['study']}"
        found[PAGES / f"{each['paper']['name']}.md"] = replication.markdown(each, folder)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("NAME", "DIR"))
    parser.add_argument("--same", nargs=2, metavar=("NAME", "DIR"))
    asked = parser.parse_args()
    try:
        if asked.take:
            study = open_study(asked.take[0])
            print(f"{study.name}: {shipping.take(study, Path(asked.take[1]))['score']}")
            return 0
        if asked.same:
            turned = shipping.turned(open_study(asked.same[0]), Path(asked.same[1]))
            for claim, (ships, now) in turned.items():
                print(f"{asked.same[0]}: {claim} is {now}, in the run that ships {ships}", file=sys.stderr)
            return 1 if turned else 0
        wanted = pages()
    except UsageError as error:
        print(f"replications: {error}", file=sys.stderr)
        return 1
    if asked.check:
        there = {path: path.read_text(encoding="utf-8") for path in wanted if path.is_file()}
        stale = [path for path, page in wanted.items() if there.get(path) != page]
        for path in stale:
            print(f"replications: {path.relative_to(ROOT)} is out of date: make replications", file=sys.stderr)
        return 1 if stale else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for path, page in wanted.items():
        path.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
