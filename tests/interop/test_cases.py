"""What cases find wrong with packets."""

from unittest.mock import Mock

import pytest

from airloom.interop.cases import CASES
from airloom.interop.traces import V1, Trace


def judged(name: str, **said: object) -> str | None:
    """What is wrong with captures of which this is said, on both sides."""
    trace = Mock(spec=Trace, has_keys=True, is_read=True)
    for question, answer in {"handshakes": 1, "versions": {V1}, **said}.items():
        getattr(trace, question).return_value = answer
    (case,) = (case for case in CASES if case.name == name)
    return case.check(trace, trace)


@pytest.mark.parametrize(
    ("paths", "responses", "wrong"),
    [
        ([("a", []), ("b", ["1"])], {"1"}, None),
        # The server asks over the path before, too.
        ([("a", []), ("b", ["1"]), ("a", ["2"])], {"1"}, None),
        ([("a", ["0"]), ("b", ["1"]), ("b", ["2"])], {"1"}, None),
        ([("a", []), ("b", ["1"])], {"2"}, "1 PATH_CHALLENGEs were not answered"),
        ([("a", []), ("b", []), ("b", ["1"])], {"1"}, "the first packet of the server over b has no PATH_CHALLENGE"),
        ([("a", []), ("a", ["1"])], {"1"}, "the server saw one path only"),
    ],
)
def test_the_first_packet_over_a_new_path_has_a_challenge_that_is_answered(
    paths: list[tuple[str, list[str]]], responses: set[str], wrong: str | None
) -> None:
    assert judged("rebind-port", paths=paths, responses=responses) == wrong
