"""Addresses for devices: what a server of DHCP answers, and what it does not."""

from ipaddress import IPv4Address, IPv4Interface

from airloom.gateway import dhcp
from airloom.gateway.dhcp import ACK, DECLINE, DISCOVER, INFORM, NAK, OFFER, RELEASE, REQUEST, Answer, Leases

ROUTER = IPv4Interface("10.78.0.1/24")
NOBODY = IPv4Address(0)


def message(kind: int, client: int = 1, *options: tuple[int, bytes], address: IPv4Address = NOBODY) -> bytes:
    """A client's message as RFC 2131 (2) draws it."""
    hardware = bytes((2, 0, 0, 0, 0, client))
    head = bytes((1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80, 0)) + address.packed + bytes(12) + hardware.ljust(208, b"\0")
    body = b"".join(bytes((code, len(value))) + value for code, value in ((53, bytes((kind,))), *options))
    return head + bytes((99, 130, 83, 99)) + body + b"\xff"


def asked(leases: Leases, *said: object, now: float = 0.0, address: IPv4Address = NOBODY) -> Answer | None:
    request = dhcp.parse(message(*said, address=address))  # type: ignore[arg-type]
    assert request is not None
    return leases.answer(request, now)


def given(leases: Leases, client: int, now: float = 0.0) -> IPv4Address:
    """The address that a client gets in four messages."""
    offer = asked(leases, DISCOVER, client, now=now)
    assert offer is not None
    assert offer.address is not None
    options = ((50, offer.address.packed), (54, ROUTER.ip.packed))
    assert asked(leases, REQUEST, client, *options, now=now) == Answer(ACK, offer.address)
    return offer.address


def test_a_client_is_offered_an_address_and_gets_it_and_keeps_it() -> None:
    leases = Leases(ROUTER)
    mine = given(leases, 1)
    assert mine in ROUTER.network
    assert mine != ROUTER.ip
    assert given(leases, 2) != mine
    # Renewed where it is used, asked for again after a restart, and offered to whoever has it.
    assert asked(leases, REQUEST, 1, now=1800.0, address=mine) == Answer(ACK, mine)
    assert asked(leases, REQUEST, 1, (50, mine.packed), now=1900.0) == Answer(ACK, mine)
    assert asked(leases, DISCOVER, 1, now=2000.0) == Answer(OFFER, mine)


def test_who_wants_what_it_cannot_have_is_refused() -> None:
    leases = Leases(ROUTER)
    mine = given(leases, 1)
    for wanted in (mine, IPv4Address("192.168.1.5"), ROUTER.ip):
        assert asked(leases, REQUEST, 2, (50, wanted.packed)) == Answer(NAK, None)
    assert asked(leases, REQUEST, 2, (50, mine.packed), (54, IPv4Address("10.78.0.9").packed)) is None


def test_a_server_that_has_forgotten_gives_the_same_client_the_same_address() -> None:
    assert [given(Leases(ROUTER), 7) for _ in range(2)] == [given(Leases(ROUTER), 7)] * 2
    leases = Leases(ROUTER)
    request = dhcp.parse(message(DISCOVER, 9))
    assert request
    leases.keep(request.client, IPv4Address("10.78.0.77"), 0.0)
    assert asked(leases, DISCOVER, 9) == Answer(OFFER, IPv4Address("10.78.0.77"))


def test_clients_are_known_by_few_octets_however_long_the_names_that_they_give_themselves() -> None:
    """All of them go on with their addresses as one word of a command, which Linux limits to 128 KiB."""
    leases = Leases(ROUTER)
    mine, other = ([(61, bytes(234))] * 4 + [(61, bytes((0, last)))] for last in (1, 2))
    known = [request.client for name in (mine, other) if (request := dhcp.parse(message(DISCOVER, 1, *name)))]
    assert len(set(known)) == 2
    assert max(map(len, known)) <= 64
    leases.keep(known[0], IPv4Address("10.78.0.77"), 0.0)
    assert asked(leases, DISCOVER, 2, *mine) == Answer(OFFER, IPv4Address("10.78.0.77"))
    assert asked(leases, REQUEST, 2, (50, IPv4Address("10.78.0.77").packed), *other) == Answer(NAK, None)


def test_addresses_come_back_when_they_are_released_or_too_old_and_are_not_more_than_there_are() -> None:
    leases = Leases(ROUTER)
    some = {given(leases, client) for client in range(245)}
    assert len(some) == 245
    assert asked(leases, DISCOVER, 250) is None
    first = given(leases, 0)
    assert asked(leases, RELEASE, 0, address=first) is None
    assert given(leases, 250) == first
    assert given(leases, 251, now=dhcp.LEASE_S + 1.0) in some
    assert asked(leases, DECLINE, 3, (50, given(leases, 3).packed)) is None
    # Whoever found it in use is offered another one.
    assert asked(leases, DISCOVER, 3, now=1.0) is None


def test_who_has_an_address_of_its_own_is_told_the_rest() -> None:
    own = IPv4Address("10.78.0.5")
    answer = asked(Leases(ROUTER), INFORM, 1, address=own)
    assert answer == Answer(ACK, None)
    request = dhcp.parse(message(INFORM, address=own))
    assert request
    octets = dhcp.emit(request, answer, ROUTER, [IPv4Address("192.0.2.53")])
    assert (octets[12:16], octets[16:20]) == (own.packed, bytes(4))
    assert bytes((6, 4, 192, 0, 2, 53)) in octets
    # No lease for who has none.
    assert bytes((51, 4)) not in octets[240:]


def test_what_is_no_message_of_a_client_here_is_left_alone() -> None:
    whole = message(DISCOVER, 1, (12, b"a phone\0"))
    request = dhcp.parse(whole)
    assert request
    assert (request.host_name, request.requested) == ("a phone", None)
    for wrong in (
        b"",
        whole[:239],
        bytes((2,)) + whole[1:],
        whole[:236] + bytes(4) + whole[240:],
        whole[:24] + b"\x0a\0\0\1" + whole[28:],
        whole[:240] + b"\xff",
        message(DISCOVER, 1, (53, b"\1\1")),
    ):
        assert dhcp.parse(wrong) is None
    # Options that end too early, or come in two parts (RFC 3396).
    assert dhcp.parse(whole[:-1] + bytes((50, 9, 1)))
    halves = dhcp.parse(message(DISCOVER, 1, (50, b"\x0a\x4e"), (50, b"\0\x09")))
    assert halves
    assert halves.requested == IPv4Address("10.78.0.9")


def test_only_some_types_have_an_answer() -> None:
    answered = [kind for kind in range(256) if asked(Leases(ROUTER), kind) is not None]
    assert answered == [DISCOVER, REQUEST, INFORM]
