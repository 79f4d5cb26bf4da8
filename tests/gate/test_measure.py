"""What a gate takes over from the commands that it runs."""

from pathlib import Path

from airloom.gate.measure import _written


def test_a_number_that_is_too_large_for_a_measure_is_none_like_one_that_is_infinite() -> None:
    Path("measures.json").write_text(
        f'{{"letters": 7, "ok": true, "many": {10**400}, "more": {"9" * 5000}, "e": 1e400, "none": NaN, "text": "3"}}'
    )
    assert _written(Path("measures.json")) == {"letters": 7.0, "ok": 1.0}
