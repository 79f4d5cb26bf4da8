"""The server of the outside world: a folder by HTTP and, with a certificate, HTTPS; and names, all of one address."""

import functools
import http.server
import socket
import ssl
import struct
import sys
import threading
from pathlib import Path


class Server(http.server.ThreadingHTTPServer):
    """Of both families at one port."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def answer(query: bytes, address: str) -> bytes:
    """Says that a name has this address, and no other record (RFC 1035, 4.1)."""
    end = query.index(b"\0", 12) + 5
    is_address = query[end - 4 : end - 2] == b"\0\1"
    head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, is_address, 0, 0)
    record = struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(address)
    return head + query[12:end] + record * is_address


def names(address: str) -> None:
    """Answers all that is asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.bind((address, 53))
        while True:
            query, who = asked.recvfrom(512)
            asked.sendto(answer(query, address), who)


def main(address: str, place: str, certificate: str | None = None) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=place)
    plain = Server(("::", 80), handler)
    threading.Thread(target=names, args=(address,), daemon=True).start()
    if certificate is not None:
        secure = Server(("::", 443), handler)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, Path(certificate).with_suffix(".key"))
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=secure.serve_forever, daemon=True).start()
    plain.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
