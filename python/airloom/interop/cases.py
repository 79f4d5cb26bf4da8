"""The test cases of the QUIC interop runner: files, network, and what has to be true afterwards.

Names, letters, networks and questions are those of quic-interop/quic-interop-runner (`testcases_quic.py`).
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from airloom.interop import traces
from airloom.interop.traces import Trace, Unreadable
from airloom.interop.words import DEFAULT

KB, MB = 1 << 10, 1 << 20
_LOSSY = "--delay=15ms --bandwidth=10Mbps --queue=25"
_BURSTS = "--burst_to_server=3 --burst_to_client=3"

#: What is wrong with the packets on the client's and the server's side, if anything is.
Check = Callable[[Trace, Trace], str | None]


class Case(NamedTuple):
    """A test case."""

    name: str
    abbreviation: str
    desc: str
    #: Sizes of the files that are fetched.
    files: tuple[int, ...]
    #: TESTCASE, of both ends or of each.
    client: str
    server: str
    check: Check
    scenario: str = DEFAULT
    host: str = "server4"
    timeout_s: int = 60
    #: Certificates in the server's chain.
    chain: int = 1
    #: Letters of a file's name.
    letters: int = 12
    #: Is the rate of the transfer what is wanted? Then it is repeated so often.
    repetitions: int = 0

    def make_files(self, folder: Path, seed: int) -> list[str]:
        """Files with random names and octets."""
        source = random.Random(f"{self.name} {seed}")
        names = []
        for size in self.files:
            names.append("".join(source.choices(string.ascii_lowercase, k=self.letters)))
            (folder / names[-1]).write_bytes(source.randbytes(size))
        return names


def _handshakes(wanted: int) -> Check:
    def check(_: Trace, server: Trace) -> str | None:
        versions = server.versions("server")
        if versions != {traces.V1}:
            return f"the server's Initials should be of version 1, found {_hex(versions)}"
        found = server.handshakes()
        return None if found == wanted else f"expected {wanted} handshakes, found {found}"

    return check


def _hex(numbers: set[int]) -> str:
    return ", ".join(map(hex, sorted(numbers))) or "none"


def _all(*checks: Check) -> Check:
    def check(client: Trace, server: Trace) -> str | None:
        return next((wrong for each in checks if (wrong := each(client, server))), None)

    return check


def _no_retry(client: Trace, _: Trace) -> str | None:
    return "a Retry was sent" if client.tokens()[0] else None


def _client_hellos(client: Trace, _: Trace) -> str | None:
    found = client.client_hellos()
    return None if found >= 2 else f"expected a repeated ClientHello, found {found}"


def _chacha20(client: Trace, _: Trace) -> str | None:
    suites = client.suites()
    return None if suites == {traces.CHACHA20} else f"expected ChaCha20 alone to be offered, found {_hex(suites)}"


def _keys(check: Check) -> Check:
    def judge(client: Trace, server: Trace) -> str | None:
        if not client.has_keys:
            raise Unreadable("no endpoint logged its keys, so the packets cannot be judged")
        if not client.is_read:
            raise Unreadable("this tshark cannot read the packets with the keys that were logged")
        return check(client, server)

    return judge


def _streams(client: Trace, _: Trace) -> str | None:
    limits = client.stream_limits()
    if not limits:
        return "the server's limit of streams was not seen"
    return f"the server begins with {max(limits)} streams, more than 1000" if max(limits) > 1000 else None


def _retry(client: Trace, _: Trace) -> str | None:
    given, used = client.tokens()
    if not given:
        return "no Retry was sent"
    if not given & used:
        return "no Initial has the token of a Retry"
    highest = -1
    for number, token in client.initials():
        if token:
            # RFC 9000 (17.2.5.3).
            return None if number > highest else "the client began its packet numbers anew after the Retry"
        highest = max(highest, number)
    return None


def _resumption(client: Trace, _: Trace) -> str | None:
    own = list(dict.fromkeys(p.scid for p in client.longs("server") if p.kind == traces.HANDSHAKE))
    certified = client.certificates()
    if len(own) != 2:
        return f"expected Handshake packets of two connections, found {len(own)}"
    if own[0] not in certified:
        return "the first of two handshakes has no certificate"
    return "the second handshake has a certificate" if own[1] in certified else None


_ZERO_FILES, _ZERO_LETTERS = 40, 250


def _zero_rtt(client: Trace, _: Trace) -> str | None:
    if not client.octets("client", "quic.long.packet_type==1"):
        return "no 0-RTT data was sent"
    late = client.octets("client", "quic.header_form==0 && !quic.version")
    return f"{late} octets were sent in 1-RTT packets" if late > _ZERO_FILES * _ZERO_LETTERS / 2 else None


def _key_update(client: Trace, server: Trace) -> str | None:
    phases = client.key_phases("client"), server.key_phases("server")
    return None if all("1" in each for each in phases) else "not both ends sent packets of key phase 1"


def _ecn(client: Trace, server: Trace) -> str | None:
    for trace, name in ((client, "client"), (server, "server")):
        codepoints, reports = trace.ecn(name)
        if not codepoints & {"1", "2"} or "3" in codepoints:
            return f"the {name}'s datagrams are not marked ECT"
        if not reports:
            return f"the {name} reported no ECN counts"
    return None


def _amplification(_: Trace, server: Trace) -> str | None:
    if (end := server.crypto_end()) < 7500:
        return f"the server's handshake has {end} octets only: not the given certificates"
    allowed = 0
    for sender, octets, kinds in server.amplification():
        if sender == "client":
            if str(traces.HANDSHAKE) in kinds:
                return None
            # As there: up to four times is let pass.
            allowed += 4 * octets
        elif octets >= allowed:
            return "the server sent more than it may before the client's address was known"
        else:
            allowed -= octets
    return "the client's first Handshake packet was not seen"


def _new_paths(client: Trace, server: Trace) -> str | None:
    known: set[str] = set()
    asked: set[str] = set()
    for path, challenges in server.paths():
        if path in known:
            # What comes later may be asked of the path before, which a NAT has closed (RFC 9000, 9.3.3).
            continue
        if known and not challenges:
            return f"the first packet of the server over {path} has no PATH_CHALLENGE"
        if known:
            asked.update(challenges)
        known.add(path)
    if len(known) < 2:
        return "the server saw one path only"
    unanswered = asked - client.responses()
    return f"{len(unanswered)} PATH_CHALLENGEs were not answered" if unanswered else None


def _new_addresses(_: Trace, server: Trace) -> str | None:
    found = {path.split()[0] for path, _ in server.paths()}
    return None if len(found) > 1 else "the server saw one address only"


def _new_ids(client: Trace, _: Trace) -> str | None:
    """RFC 9000 (9.5): who sees both paths does not see that they are of one connection."""
    known: set[str] = set()
    used: set[str] = set()
    for path, ids in client.client_ids():
        if path not in known and used.intersection(ids):
            return f"the client's first packet over {path} has a connection ID of an earlier path"
        known.add(path)
        used.update(ids)
    return None


def _six_only(_: Trace, server: Trace) -> str | None:
    return "there are packets of IPv4" if server.counts("quic && ip && !icmp") else None


def _v2(client: Trace, server: Trace) -> str | None:
    for wanted, found in (
        (traces.V1, client.versions("client")),
        (traces.V2, server.versions("server")),
    ):
        if wanted not in found:
            return f"expected Initials of version {wanted:#x}, found {_hex(found)}"
    for trace, sender in ((client, "client"), (server, "server")):
        if (found := trace.versions(sender, traces.HANDSHAKE)) != {traces.V2}:
            return f"the {sender}'s Handshake packets should be of version 2, found {_hex(found)}"
    return None


def _case(
    name: str,
    abbreviation: str,
    desc: str,
    files: tuple[int, ...],
    check: Check,
    *,
    client: str | None = None,
    server: str | None = None,
    **more: object,
) -> Case:
    return Case(name, abbreviation, desc, files, client or name, server or client or name, check, **more)  # type: ignore[arg-type]


_ONE, _CONNECTIONS = _handshakes(1), 50
_REBIND = f"rebind {_LOSSY} --first-rebind=1s --rebind-freq=5s"
_TRANSFER = (2 * MB, 3 * MB, 5 * MB)
_FIFTY = (KB,) * _CONNECTIONS

CASES = (
    _case("handshake", "H", "A handshake completes.", (KB,), _all(_ONE, _no_retry)),
    _case("transfer", "DC", "Three files at once, over streams whose windows have to grow.", _TRANSFER, _ONE),
    _case(
        "longrtt",
        "LR",
        "A handshake over a round trip of 1.5 s.",
        (KB,),
        _all(_ONE, _client_hellos),
        client="handshake",
        scenario="simple-p2p --delay=750ms --bandwidth=10Mbps --queue=25",
    ),
    _case("chacha20", "C20", "ChaCha20 alone is offered, and taken.", (3 * MB,), _all(_ONE, _chacha20)),
    _case(
        "multiplexing",
        "M",
        "Thousands of files over one connection.",
        (32,) * 1999,
        _keys(_all(_ONE, _streams)),
        client="transfer",
    ),
    _case(
        "retry",
        "S",
        "The server sends a Retry, and the client comes back with its token.",
        (10 * KB,),
        _all(_ONE, _retry),
    ),
    _case(
        "resumption",
        "R",
        "A second connection resumes the session of the first.",
        (5 * KB, 10 * KB),
        _keys(_all(_handshakes(2), _resumption)),
    ),
    _case(
        "zerortt",
        "Z",
        "Requests are sent in 0-RTT packets.",
        (32,) * _ZERO_FILES,
        _all(_handshakes(2), _zero_rtt),
        letters=_ZERO_LETTERS,
    ),
    _case("http3", "3", "Files over HTTP/3.", (5 * KB, 10 * KB, 500 * KB), _ONE),
    _case(
        "blackhole",
        "B",
        "A transfer goes on after two seconds of nothing.",
        (10 * MB,),
        _ONE,
        client="transfer",
        scenario=f"blackhole {_LOSSY} --on=5s --off=2s",
    ),
    _case(
        "keyupdate",
        "U",
        "Keys are updated while the transfer goes on.",
        (3 * MB,),
        _keys(_all(_ONE, _key_update)),
        server="transfer",
    ),
    _case("ecn", "E", "Both ends use ECN.", (100 * KB,), _keys(_all(_ONE, _no_retry, _ecn))),
    _case(
        "amplificationlimit",
        "A",
        "The server sends no more than three times what it got.",
        (5 * KB,),
        _keys(_all(_ONE, _amplification)),
        client="transfer",
        scenario=f"droplist {_LOSSY} --drops_to_server=2,3,4,5,6,7",
        chain=9,
    ),
    _case(
        "handshakeloss",
        "L1",
        "Handshakes complete although 30 % of the packets are lost.",
        _FIFTY,
        _handshakes(_CONNECTIONS),
        client="multiconnect",
        scenario=f"drop-rate {_LOSSY} --rate_to_server=30 --rate_to_client=30 {_BURSTS}",
        timeout_s=300,
    ),
    _case(
        "transferloss",
        "L2",
        "A transfer completes although 2 % of the packets are lost.",
        (2 * MB,),
        _ONE,
        client="transfer",
        scenario=f"drop-rate {_LOSSY} --rate_to_server=2 --rate_to_client=2 {_BURSTS}",
    ),
    _case(
        "handshakecorruption",
        "C1",
        "Handshakes complete although 30 % of the packets are corrupted.",
        _FIFTY,
        _handshakes(_CONNECTIONS),
        client="multiconnect",
        scenario=f"corrupt-rate {_LOSSY} --rate_to_server=30 --rate_to_client=30 {_BURSTS}",
        timeout_s=300,
    ),
    _case(
        "transfercorruption",
        "C2",
        "A transfer completes although 2 % of the packets are corrupted.",
        (2 * MB,),
        _ONE,
        client="transfer",
        scenario=f"corrupt-rate {_LOSSY} --rate_to_server=2 --rate_to_client=2 {_BURSTS}",
    ),
    _case(
        "ipv6",
        "6",
        "A transfer over IPv6.",
        (5 * KB, 10 * KB),
        _all(_ONE, _six_only),
        client="transfer",
        host="server6",
    ),
    _case("v2", "V2", "Both ends change to QUIC version 2.", (KB,), _v2),
    _case(
        "rebind-port",
        "BP",
        "A transfer survives a NAT that changes the client's port.",
        (10 * MB,),
        _keys(_all(_ONE, _new_paths)),
        client="transfer",
        scenario=_REBIND,
    ),
    _case(
        "rebind-addr",
        "BA",
        "A transfer survives a NAT that changes the client's address and port.",
        (10 * MB,),
        _keys(_all(_ONE, _new_addresses, _new_paths)),
        client="transfer",
        scenario=f"{_REBIND} --rebind-addr",
    ),
    _case(
        "connectionmigration",
        "CM",
        "The client moves to the server's preferred address.",
        (2 * MB,),
        _keys(_all(_ONE, _new_paths, _new_ids)),
        client="transfer",
        server="connectionmigration",
        host="server46",
    ),
)

MEASUREMENTS = (
    _case("goodput", "G", "The goodput over 10 Mbit/s.", (10 * MB,), _ONE, client="transfer", repetitions=5),
    _case(
        "crosstraffic",
        "C",
        "The goodput over 10 Mbit/s beside a TCP connection (CUBIC).",
        (25 * MB,),
        _ONE,
        client="transfer",
        scenario=f"tcp-cross-traffic {_LOSSY} --congestion=cubic",
        timeout_s=180,
        repetitions=5,
    ),
)


def goodput_kbps(case: Case, client: Trace) -> float:
    """Octets of the files over the time from the first to the last 1-RTT datagram that came to the client."""
    seen = client.times("quic.header_form==0 && udp.srcport==443")
    return 8 * sum(case.files) / (seen[-1] - seen[0]) / 1000
