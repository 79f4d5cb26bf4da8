"""Which runs are tried next after sessions ended, without the sessions."""

from pathlib import Path

import pytest

from airloom.sweep.layout import SweepFolder, lines
from airloom.sweep.suspects import Suspects
from airloom.sweep.work import Key


@pytest.mark.parametrize("count", [1, 2, 64, 65, 5000, 20_000])
@pytest.mark.parametrize("guilty", [[0], [0, 1], [0.3, 0.7, 0.99]])
def test_the_reasons_are_found_and_nothing_else_is_lost(count: int, guilty: list[float]) -> None:
    runs = [(0, seed) for seed in range(count)]
    reasons = {(0, at if at in (0, 1) else int(at * count)) for at in guilty} & set(runs)
    ends = [set(runs)]
    made: set[Key] = set()
    for _ in range(5 * len(reasons)):
        suspects = Suspects(ends)
        todo = [run for run in runs if run not in made]
        for part in suspects.parts(todo):
            if reasons & set(part):
                ends.append(set(part))
                break
            made.update(part)
        else:
            assert {run for run in todo if suspects.is_reason(run)} == reasons
            assert made == set(runs) - reasons
            return
    raise AssertionError("it does not come to its end")


def test_a_run_is_no_reason_before_a_second_end_and_only_where_it_was_alone() -> None:
    suspects = Suspects([{(0, 1)}, {(0, 2), (0, 3)}, {(0, 2), (0, 4)}, {(1, 1)}, {(1, 1)}])
    assert [run for run in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1)) if suspects.is_reason(run)] == [(1, 1)]
    assert (0, 5) not in suspects
    assert len(suspects) == 5


def test_what_is_under_way_is_found_by_the_next_session(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path)
    folder.parts.mkdir()
    slices = [[(0, 7), (0, 8), (0, 9), (1, 10), (1, 12), (1, 11)], [(2, 2**64 - 1)]]
    folder.under_way([lines(runs) for runs in slices])
    assert (folder.parts / "under-way").read_text().splitlines()[0] == "0 7 9"
    assert folder.ends() == [{run for runs in slices for run in runs}]
    assert folder.ends() == [{run for runs in slices for run in runs}], "it is one end, however often it is looked at"
    # The second thread has written its line, the first one not yet.
    (folder.parts / "under-way").write_bytes(b"\0" * 42 + f"{3:>20} {4:>20}\n".encode())
    assert sorted(len(end) for end in folder.ends()) == [1, 7]
    folder.under_way([lines([(0, 1)])])
    folder.under_way([])
    assert len(folder.ends()) == 2
