"""A TCP proxy as one writes it in an afternoon: for each port a server, for each connection two threads that copy.

    forwarder.py [--no-nagle] PORT=HOST:PORT ...

It connects onward as soon as a client is there, passes on that one side has finished, and sets no option of the sockets
unless told to: Nagle's rule is on, as it is where nobody thinks of it.
"""

import socket
import sys
import threading
from contextlib import suppress

#: Octets of a read.
PIECE = 8192


def pump(source: socket.socket, to: socket.socket) -> None:
    """Copies what comes, then says that no more comes."""
    with suppress(OSError):
        while octets := source.recv(PIECE):
            to.sendall(octets)
        to.shutdown(socket.SHUT_WR)
        return
    for each in (source, to):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def pair(client: socket.socket, server: tuple[str, int], nagle: bool) -> None:
    """One connection, and the one that goes on."""
    with client, suppress(OSError), socket.create_connection(server) as onward:
        for each in (client, onward):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not nagle)
        back = threading.Thread(target=pump, args=(onward, client), daemon=True)
        back.start()
        pump(client, onward)
        back.join()


def forward(port: int, server: tuple[str, int], nagle: bool) -> None:
    """Takes clients."""
    with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=pair, args=(client, server, nagle), daemon=True).start()


def main(*words: str) -> None:
    """Until it is killed."""
    nagle = "--no-nagle" not in words
    for word in words:
        if word != "--no-nagle":
            port, server = word.split("=")
            host, at = server.rsplit(":", 1)
            threading.Thread(target=forward, args=(int(port), (host, int(at)), nagle)).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
