"""PPP Multilink in a capture: Wireshark puts the datagrams together again."""

import airloom as al
from tests.wireshark import fields, frames

#: It puts together what came in more pieces than it expects.
MANY = ("-o", "mp.max_fragments:64")


def test_wireshark_puts_the_bundle_together() -> None:
    # How many packets come in an order that Wireshark does not guess depends on when they are sent: 4 % with
    # the scenario's windows of four segments, fewer than 2 % with the profiles' own.
    windows = {f"hosts.{host}.transport.tcp.receive_buffer": "8760B" for host in ("mobile", "server")}
    first = {f"hosts.{host}.transport.tcp.initial_receive_window": "8760B" for host in ("mobile", "server")}
    changes = {
        **windows,
        **first,
        "hosts.mobile.app.bulk.size": "200kB",
        # Nothing is lost on it.
        "links.bundle.detect": "0s",
        "timeline": [
            {"at": "0s", "target": "bundle.member.5", "set": {"state": "down"}},
            {"at": "1ms", "target": "bundle.member.5", "set": {"state": "up"}},
        ],
    }
    run = al.load("phs-384k", changes).run()
    assert frames(run.capture, "_ws.malformed || !ppp", *MANY) == []
    rows = fields(run.capture, "mp.seq", "tcp.len", "ppp.code", options=MANY)
    seen = run.packets.cast({"point": str, "event": str})
    arrived = seen.filter(seen["event"] == "rx")
    assert len(rows) == arrived.height > 500
    numbers = [int(row[0]) for row in rows if row[0]]
    assert numbers == arrived["seq"].drop_nulls().to_list()
    # Reassembled segments carry the file, but for packets whose pieces come in another order than Wireshark guesses.
    octets = sum(int(row[1]) for row in rows if row[1])
    assert octets >= 0.98 * 200_000
    # The circuit that came back was negotiated: a request and an answer.
    assert {row[2] for row in rows if row[2]} == {"1", "2"}
