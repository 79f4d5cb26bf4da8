"""The applications of Table 2 on real sockets of this machine's loopback: which of them work. Prints JSON.

Client and gateway are airloom's; the server of this program is the origin with the paper's CGI: it takes letters by
POST and tells of each by a push.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer

from wap_vs_http.daemon import gateway
from wap_vs_http.decks import deck

from airloom.bounded import Answering
from airloom.wap import Client
from airloom.wap.pap import Initiator, Method

#: One pixel.
GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
LARGE = os.urandom(100_000)
PHONE = "127.0.0.1"


class Origin(ThreadingHTTPServer):
    """Decks, a large object, a form, and a mailbox that tells of letters by push."""

    daemon_threads = True
    pusher: Initiator
    letters: list[bytes]


class Handler(Answering):
    """Answers."""

    protocol_version = "HTTP/1.1"
    server: Origin

    def do_GET(self) -> None:
        """A deck, or a large object."""
        if self.path == "/large":
            self.answer(200, "application/octet-stream", LARGE)
        else:
            self.answer(200, "text/vnd.wap.wml", deck(1400))

    def do_POST(self) -> None:
        """A form comes back; a letter is kept and told of."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/mail":
            self.server.letters.append(body)
            threading.Thread(target=push, args=(self.server.pusher, "New mail", "confirmed")).start()
        self.answer(200, "text/plain", body)


def push(pusher: Initiator, content: str | bytes, method: Method) -> bool:
    """Submits a push to the phone."""
    kind = "text/plain" if isinstance(content, str) else "image/gif"
    return pusher.push(PHONE, content, kind, method=method).is_taken


def main() -> None:
    """Tries all and prints what worked."""
    origin = Origin(("127.0.0.1", 0), Handler)
    origin.letters = []
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    with gateway("--push", "127.0.0.1:0") as (_, port, said):
        pusher = origin.pusher = Initiator(next(word for word in said if word.startswith("http://")))
        with Client(PHONE, port, maximum_group=32_000) as wap:
            found = _try_all(wap, pusher, origin)
    json.dump(found, sys.stdout)


def _try_all(wap: Client, pusher: Initiator, origin: Origin) -> dict[str, dict[str, bool]]:
    url = f"http://127.0.0.1:{origin.server_address[1]}"

    def pushed(content: str | bytes, method: Method) -> bool:
        if not push(pusher, content, method):
            return False
        came = wap.push(20.0)
        body = content.encode() if isinstance(content, str) else content
        return came is not None and came.body == body

    def mail() -> bool:
        sent = wap.post(f"{url}/mail", b"to=b%40example.org&text=Hello")
        notice = wap.push(20.0)
        return sent.status == 200 and len(origin.letters) == 1 and notice is not None and notice.body == b"New mail"

    def suspended() -> bool:
        wap.core.suspend()
        wap.core.resume()
        return wap.get(f"{url}/deck").status == 200

    shown = wap.get(f"{url}/deck")
    large = wap.get(f"{url}/large")
    form = wap.post(f"{url}/form", b"name=value")
    applications: dict[str, Callable[[], bool]] = {
        "browsing, GET": lambda: shown.status == 200 and "<card" in shown.text(),
        "browsing, POST": lambda: form.body == b"name=value",
        "push of text, unconfirmed": lambda: pushed("News", "unconfirmed"),
        "push of text, confirmed": lambda: pushed("News", "confirmed"),
        "push of a GIF, unconfirmed": lambda: pushed(GIF, "unconfirmed"),
        "push of a GIF, confirmed": lambda: pushed(GIF, "confirmed"),
        "e-mail, sent by POST and told of by push": mail,
    }
    works = {name: bool(do()) for name, do in applications.items()}
    parts = {
        "class 0": works["push of text, unconfirmed"],
        "class 1": works["push of text, confirmed"],
        "class 2": works["browsing, GET"],
        "SAR": large.body == LARGE,
        "session": wap.core.agreed is not None,
        "suspend and resume": suspended(),
        "push": works["push of a GIF, confirmed"],
        # The type comes as a number and is a text again here.
        "header encoding": shown.content_type.startswith("application/vnd.wap.wmlc"),
        "WML shown": '<p mode="wrap">' in shown.text(),
        "push server": works["e-mail, sent by POST and told of by push"],
    }
    return {"applications": works, "parts": parts}


if __name__ == "__main__":
    main()
