"""Numbers of the page of benchmarks."""

from tools.bench.report import GOALS, scaled


def test_what_takes_processor_time_is_scaled_to_the_reference_machine() -> None:
    for name, what, *_ in GOALS:
        by = 2 if "per CPU s" in what else 1 / 2 if "CPU s" in what else 1
        assert scaled(name, 3.0, 2.0) == 3 * by, what
