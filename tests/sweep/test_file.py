"""Which files are sweep files, and where they find their scenario."""

from pathlib import Path

from airloom.sweep.file import is_sweep_file, plan
from tests.sweep.conftest import FETCH


def test_a_sweep_file_is_one_by_what_it_says_and_not_by_its_name() -> None:
    for name, text in {
        "loss.txt": 'scenario = "fetch.toml"',
        "fetch.toml": FETCH,
        "run.json": '{"scenario": "fetch.toml"}',
        "deep": "a = " + "[" * 100_000,
        "letters": "\N{LATIN SMALL LETTER O WITH DIAERESIS}",
    }.items():
        Path(name).write_text(text, encoding="latin-1")
        assert is_sweep_file(name) is (name == "loss.txt")
    assert not is_sweep_file("nothing")
    assert repr(plan("loss.txt").sweep) == "Sweep('fetch', 1 points x 20 seeds)"


def test_only_the_scenario_of_a_sweep_file_is_looked_for_beside_it() -> None:
    Path("net/net").mkdir(parents=True)
    Path("net/a.toml").write_text(FETCH)
    Path("net/net/a.toml").write_text("another one")
    Path("net/loss.toml").write_text('scenario = "a.toml"')
    for name in ("net/a.toml", "net/loss.toml"):
        assert plan(name).sweep.scenario.file == "net/a.toml"
