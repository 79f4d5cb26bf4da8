"""Studies: what a paper states, held against what the same network does here.

```
studies/<name>/                         the data: no protocol code, no typed verdict
  claims.toml       claims.py paper.py  the paper, what it states, and what would be near enough
  assumptions.toml  assumptions.py      what it leaves open; readings are combinations of its levels
  sweep.toml        plan.py             which sweeps are made, with which seeds
  study.py          folder.py           what the files cannot say: from tables to evidence for a claim
                    execute.py          makes the sweeps, resumable
                    rules.py            evidence + claim -> verdict, by the tests of analysis/statistics.py
                    outcome.py          all verdicts, those at every other reading (the map), the controls
                    drawing.py          figures and tables, and the marks that all studies share
                    text.py page.py     the report: terminal, JSON, HTML with figures
```
"""

from airloom.study.data import Data, NotMade, NotSwept
from airloom.study.drawing import StudyFigure, StudyTable
from airloom.study.folder import Computation, Study, at_default, names, open_study
from airloom.study.rules import Evidence, Grid, Numbers, Pair, Setting, Value, exact, jackknifed, pair, value

__all__ = [
    "Computation",
    "Data",
    "Evidence",
    "Grid",
    "NotMade",
    "NotSwept",
    "Numbers",
    "Pair",
    "Setting",
    "Study",
    "StudyFigure",
    "StudyTable",
    "Value",
    "at_default",
    "exact",
    "jackknifed",
    "names",
    "open_study",
    "pair",
    "value",
]
