"""A real client: one connection, and after a pause each object, as the simulated client asks for them.

python client.py http://HOST PATH..
"""

import socket
import sys
import time

#: As long as the simulated client waits: the server's window goes back to its initial value meanwhile.
PAUSE_S = 5.0

#: Octets of a request, as in the scenario.
REQUEST = 300


def fetch(connection: socket.socket, host: str, path: str) -> None:
    """Asks for an object and reads it to its end."""
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Fill: "
    connection.sendall((head + "x" * (REQUEST - len(head) - 4) + "\r\n\r\n").encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    answer, _, body = received.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:])
    left = int(fields[b"content-length"]) - len(body)
    while left > 0:
        left -= len(_some(connection))


def _some(connection: socket.socket) -> bytes:
    octets = connection.recv(65536)
    if not octets:
        sys.exit("the server closed the connection")
    return octets


def main(url: str, *paths: str) -> None:
    """Opens the connection with a fetch of one octet, then pauses and fetches, path by path."""
    host = url.removeprefix("http://").strip("/")
    # Over IPv4, as the simulated client: its headers are 20 octets shorter.
    with socket.create_connection((socket.gethostbyname(host), 80), timeout=600) as connection:
        fetch(connection, host, "/open")
        for path in paths:
            time.sleep(PAUSE_S)
            fetch(connection, host, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
