"""A flow of UDP at a constant rate: `cross.py sink` takes it, `cross.py HOST RATE BEGIN` sends it.

Datagrams of 512 octets to the discard port (RFC 863), RATE in bit/s of these octets, from BEGIN seconds on.
"""

import contextlib
import socket
import sys
import time

_PORT = 9
_OCTETS = 512


def _sink() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("", _PORT))
        while True:
            own.recv(65536)


def _send(host: str, rate: float, begin_s: float) -> None:
    time.sleep(begin_s)
    each_s = 8 * _OCTETS / rate
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.connect((host, _PORT))
        due = time.monotonic()
        while True:
            # Nobody takes it yet, or no more.
            with contextlib.suppress(ConnectionRefusedError):
                own.send(bytes(_OCTETS))
            due += each_s
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)


if __name__ == "__main__":
    if sys.argv[1:] == ["sink"]:
        _sink()
    else:
        _send(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
