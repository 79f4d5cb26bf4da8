"""What cases find wrong with packets."""

from unittest.mock import Mock

import pytest

from airloom.interop.cases import CASES
from airloom.interop.traces import HANDSHAKE, V1, Long, Trace


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


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        ([("a", ["1"]), ("b", ["2"]), ("a", ["1"])], None),
        ([("a", ["0", "1"]), ("b", ["1"])], "the client's first packet over b has a connection ID of an earlier path"),
        # Of a server whose connection IDs have no octets there are none.
        ([("a", []), ("b", [])], None),
    ],
)
def test_a_client_that_moves_takes_another_connection_id(sent: list[tuple[str, list[str]]], wrong: str | None) -> None:
    seen: dict[str, object] = {"paths": [("a", []), ("b", ["1"])], "responses": {"1"}, "client_ids": sent}
    assert judged("connectionmigration", **seen) == wrong
    # Behind a NAT it does not know that it has moved.
    assert judged("rebind-port", **seen) is None


@pytest.mark.parametrize(
    ("initials", "wrong"),
    [
        ([(0, ""), (1, "token"), (2, "token")], None),
        ([(0, ""), (1, ""), (1, "token")], "the client began its packet numbers anew after the Retry"),
        ([(0, ""), (0, "token")], "the client began its packet numbers anew after the Retry"),
        # What cannot be read cannot be held against it.
        ([(0, "")], None),
    ],
)
def test_packet_numbers_go_on_after_a_retry(initials: list[tuple[int, str]], wrong: str | None) -> None:
    assert judged("retry", tokens=({"token"}, {"token"}), initials=initials) == wrong


@pytest.mark.parametrize(
    ("own", "certified", "wrong"),
    [
        ("aab", {"a"}, None),
        ("ab", {"b"}, "the first of two handshakes has no certificate"),
        ("ab", {"a", "b"}, "the second handshake has a certificate"),
        ("a", {"a"}, "expected Handshake packets of two connections, found 1"),
    ],
)
def test_a_session_that_is_resumed_takes_one_certificate(own: str, certified: set[str], wrong: str | None) -> None:
    longs = [Long(HANDSHAKE, V1, scid) for scid in own]
    assert judged("resumption", handshakes=2, longs=longs, certificates=certified) == wrong
