"""A server that has a thread for each client, and no more clients than it has places."""

from __future__ import annotations

import socketserver
import threading
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
