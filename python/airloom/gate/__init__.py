"""Gates for CI: links x command, address or scenario x runs, and rules that decide pass, fail or unclear.

`file` reads what is wanted, `measure` makes the runs, `rules` decides, `baseline` keeps figures to compare with, and
`outcome` says it: as text, JSON, JUnit and Markdown.
"""

from airloom.gate.file import Gate, load
from airloom.gate.measure import check_links, measure
from airloom.gate.outcome import Outcome
from airloom.gate.rules import Rule, Verdict

__all__ = ["Gate", "Outcome", "Rule", "Verdict", "check_links", "load", "measure"]
