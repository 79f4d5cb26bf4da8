"""One-way delay of UDP packets between two network namespaces of one machine.

receiver:  owd.py recv FILE COUNT
sender:    owd.py send HOST COUNT GAP_MS SIZE poisson|paced

The sender writes the time of day just before it sends; the receiver takes the kernel's receive stamp, so that its own
scheduling does not count. What remains as bias is the sender's system call: a bare veth pair shows it. The receiver
writes the delays in nanoseconds, and how long it took from the first arrival to the last, as JSON to FILE.
"""

import json
import random
import socket
import struct
import sys
import time
from pathlib import Path

PORT = 9000
SO_TIMESTAMPNS = 35
UDP_AND_IP = 28


def receive(file: str, count: int) -> None:
    """Takes `count` packets, or what comes until nothing comes any more."""
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    here.bind(("0.0.0.0", PORT))
    here.settimeout(20)
    delays: list[int] = []
    stamps: list[int] = []
    octets = 0
    try:
        while len(delays) < count:
            packet, controls, _, _ = here.recvmsg(2048, 256)
            for level, kind, data in controls:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    seconds, rest = struct.unpack("qq", data[:16])
                    stamps.append(seconds * 1_000_000_000 + rest)
            (sent,) = struct.unpack_from("!q", packet)
            delays.append(stamps[-1] - sent)
            # The first packet opens the interval: its octets do not count.
            octets += (len(packet) + UDP_AND_IP) if len(stamps) > 1 else 0
            here.settimeout(3)
    except TimeoutError:
        pass
    span = stamps[-1] - stamps[0] if stamps else 0
    Path(file).write_text(json.dumps({"delays_ns": delays, "span_ns": span, "octets": octets}))


def send(host: str, count: int, gap_ms: float, size: int, how: str) -> None:
    """Sends `count` packets. A fixed gap would lock onto clocks that tick in milliseconds, and hide them."""
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.connect((host, PORT))
    padding = bytes(max(0, size - 8))
    gap = gap_ms / 1000
    due = time.monotonic()
    # Against a rate a tenth comes at once: a queue that a late sender would let run empty measures the sender.
    at_once = count // 10 if how == "paced" else 0
    for index in range(count):
        if (left := due - time.monotonic()) > 0:
            time.sleep(left)
        there.send(struct.pack("!q", time.time_ns()) + padding)
        if index >= at_once:
            due += random.expovariate(1 / gap) if how == "poisson" else gap


if __name__ == "__main__":
    words = sys.argv[2:]
    if sys.argv[1] == "recv":
        receive(words[0], int(words[1]))
    else:
        send(words[0], int(words[1]), float(words[2]), int(words[3]), words[4])
