"""A TCP proxy as one writes it in an afternoon: for each port a server, for each connection two threads that copy.

    forwarder.py [--no-nagle | --rfc-896] PORT=HOST:PORT ...

It connects onward as soon as a client is there, passes on that one side has finished, and sets no option of the sockets
unless told to: Nagle's rule is on, as it is where nobody thinks of it. Linux's rule is Minshall's; `--rfc-896` is the
rule of RFC 896 in its place, which no option of a socket gives.
"""

import fcntl
import select
import socket
import struct
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress

#: Octets of a read.
PIECE = 8192
#: Seconds after which is looked again whether what was sent is acknowledged.
LOOK_S = 0.005

Copy = Callable[[socket.socket, socket.socket], None]


def at_once(source: socket.socket, to: socket.socket) -> None:
    """Copies what comes; the kernel may have a rule of its own."""
    while octets := source.recv(PIECE):
        to.sendall(octets)


def by_rfc_896(source: socket.socket, to: socket.socket) -> None:
    """Copies what comes; what fills no segment waits while anything that was sent is not acknowledged."""
    held = bytearray()
    while True:
        if select.select([source], [], [], LOOK_S if held else None)[0]:
            if not (octets := source.recv(PIECE)):
                # The end of a connection waits for nothing, and what is before it goes with it.
                return to.sendall(held)
            held += octets
        segment = to.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        whole = len(held) - len(held) % segment
        (waiting,) = struct.unpack("i", fcntl.ioctl(to, termios.TIOCOUTQ, bytes(4)))
        if whole == 0 and waiting == 0:
            whole = len(held)
        to.sendall(held[:whole])
        del held[:whole]


def pump(source: socket.socket, to: socket.socket, copy: Copy) -> None:
    """Copies what comes, then says that no more comes."""
    with suppress(OSError):
        copy(source, to)
        to.shutdown(socket.SHUT_WR)
        return
    for each in (source, to):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def pair(client: socket.socket, server: tuple[str, int], nagle: bool, copy: Copy) -> None:
    """One connection, and the one that goes on."""
    with client, suppress(OSError), socket.create_connection(server) as onward:
        for each in (client, onward):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not nagle)
        back = threading.Thread(target=pump, args=(onward, client, copy), daemon=True)
        back.start()
        pump(client, onward, copy)
        back.join()


def forward(port: int, server: tuple[str, int], nagle: bool, copy: Copy) -> None:
    """Takes clients."""
    with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=pair, args=(client, server, nagle, copy), daemon=True).start()


def main(*words: str) -> None:
    """Until it is killed."""
    nagle = not {"--no-nagle", "--rfc-896"} & set(words)
    copy = by_rfc_896 if "--rfc-896" in words else at_once
    for word in words:
        if not word.startswith("--"):
            port, server = word.split("=")
            host, at = server.rsplit(":", 1)
            threading.Thread(target=forward, args=(int(port), (host, int(at)), nagle, copy)).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
