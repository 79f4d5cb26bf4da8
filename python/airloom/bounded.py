"""Servers of ours for programs and browsers of this machine: a thread for each client, and no more than have places."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any


class Bounded(socketserver.ThreadingMixIn):
    """In front of a server of `socketserver`: whoever finds no place is shut out at once."""

    daemon_threads = True
    #: A semaphore with as many places as there may be clients.
    places: threading.BoundedSemaphore

    def process_request(self, request: Any, client_address: Any) -> None:
        """A client has come."""
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves it, and gives its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away."""


class Answering(BaseHTTPRequestHandler):
    """A connection of HTTP. What is asked is printed nowhere, and of us nothing is told but the name."""

    server_version = "airloom"
    sys_version = ""

    def log_message(self, *_: object) -> None:
        """Says nothing: the terminal is somebody else's."""

    def length(self, most: int) -> int | None:
        """Octets of what comes with the request; `None` if nobody says how many, or if they are more than `most`."""
        said = self.headers.get("Content-Length", "")
        # Digits by the thousand are no number to Python.
        is_number = said.isascii() and said.isdecimal() and len(said) <= 9
        return int(said) if is_number and int(said) <= most else None

    def answer(self, status: int, kind: str, octets: bytes, more: Mapping[str, str] | None = None) -> None:
        """Sends an answer of a type of content, with `more` fields."""
        self.send_response(status)
        about = {} if status == 204 else {"Content-Type": kind, "Content-Length": str(len(octets))}
        for name, value in {**about, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(octets)
