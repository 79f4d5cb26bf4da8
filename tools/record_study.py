"""Writes expected/ of a study from a quick run: the verdicts that tests compare with, and the defaults they had.

    .venv/bin/python tools/record_study.py NAME

Run it when a change is meant to change verdicts, and look at the difference. A default that is not the recorded one is
reported as chosen after the result, until this is run again; set `after_result = true` beside it to keep that said.
"""

import json
import sys
import tempfile
from pathlib import Path

from airloom.study import execute, open_study
from airloom.study.outcome import evaluate


def main(name: str) -> None:
    study = open_study(name)
    with tempfile.TemporaryDirectory() as place:
        execute.run(execute.planned(study, "quick"), Path(place))
        execute.run_programs(study, Path(place), "quick")
        outcome = evaluate(study, Path(place), "quick")
    controls = {each.id for claim in study.claims.controls for each in (claim, *claim.parts)}
    expected = study.folder / "expected"
    expected.mkdir(exist_ok=True)
    verdicts = {leaf: result.verdict for leaf, result in outcome.results.items() if leaf not in controls}
    defaults = {a.id: a.default.label for a in study.assumptions}
    for file, content in (("quick.json", {"claims": verdicts}), ("defaults.json", defaults)):
        (expected / file).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: .venv/bin/python tools/record_study.py NAME")
    main(sys.argv[1])
