"""Router advertisements, octet by octet (RFC 4861, 4.2; RFC 8106, 5.1)."""

from ipaddress import IPv6Address, IPv6Interface

from airloom.gateway import router

OWN = IPv6Interface("fd61:6972:6c6f:78::1/64")


def test_an_advertisement_has_router_network_and_name_servers() -> None:
    said = router.advertisement(OWN, bytes(range(6)), [IPv6Address("2001:db8::53")])
    head, source, mtu, prefix, servers = said[:16], said[16:24], said[24:32], said[32:64], said[64:]
    # 64 hops, not managed, 600 s.
    assert head.hex(" ") == "86 00 00 00 40 00 02 58 00 00 00 00 00 00 00 00"
    assert source == bytes((1, 1)) + bytes(range(6))
    assert mtu.hex(" ") == "05 01 00 00 00 00 05 dc"
    assert prefix[:16].hex(" ") == "03 04 40 c0 00 00 02 58 00 00 02 58 00 00 00 00"
    assert prefix[16:] == IPv6Address("fd61:6972:6c6f:78::").packed
    assert servers == bytes((25, 3, 0, 0, 0, 0, 2, 0x58)) + IPv6Address("2001:db8::53").packed


def test_the_last_one_says_that_it_is_no_router_any_more() -> None:
    said = router.advertisement(OWN, bytes(6), lifetime_s=0)
    assert said[6:8] == bytes(2)
    assert len(said) == 64


def test_only_a_neighbour_is_answered() -> None:
    asks = bytes((133, 0)) + bytes(6)
    assert router.is_solicitation(asks, 255)
    assert not router.is_solicitation(asks, 64)
    assert not router.is_solicitation(asks[:7], 255)
    assert not router.is_solicitation(bytes((134, 0)) + bytes(14), 255)
