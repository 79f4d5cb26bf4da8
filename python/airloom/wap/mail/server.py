"""The origin server that gateways ask, and the way out for letters."""

from __future__ import annotations

import smtplib
import threading
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from http.server import ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from airloom.bounded import Answering
from airloom.browser_guard import comes_from_another_page, is_meant_for_us
from airloom.closing import Closing
from airloom.errors import one_line
from airloom.wap.mail import decks
from airloom.wap.mail.letters import Letters

#: Octets of a form.
_MOST = 65_536
#: Seconds that a client or the mail server may keep us waiting.
_PATIENCE = 30.0


class Post(NamedTuple):
    """The way out: a mail server, and who sends."""

    host: str
    port: int
    sender: str

    def send(self, to: str, subject: str, text: str) -> None:
        """Sends a letter.

        Raises ValueError for one that is none, OSError (smtplib's errors are such) if it is not taken.
        """
        if not to.strip() or "@" not in to:
            raise ValueError("there is nobody to send it to")
        letter = EmailMessage()
        # A line end in a field is a ValueError here.
        letter["From"], letter["Subject"] = self.sender, subject.strip()
        try:
            letter["To"] = to.strip()
        except ValueError:
            raise
        except Exception:  # the library raises whatever comes up
            raise ValueError("the address cannot be read") from None
        letter["Date"], letter["Message-ID"] = formatdate(), make_msgid(domain=self.sender.rpartition("@")[2] or None)
        letter.set_content(text)
        with smtplib.SMTP(self.host, self.port, timeout=_PATIENCE) as server:
            server.send_message(letter)


#: For whoever is a web page of somebody else's.
_REFUSED = decks.told("Refused", "This request is not for this name, or comes from another page.")


class _Answer(NamedTuple):
    status: int
    deck: str


class MailServer(Closing):
    """Serves decks at `host:port` (0: any) in threads of its own until `close`."""

    def __init__(
        self, letters: Letters, post: Post, host: str = "127.0.0.1", port: int = 0, *, names: Sequence[str] = ()
    ) -> None:
        """Listens at once. Raises OSError if the address is not to be had.

        It answers what is sent to it by address, to `localhost`, or to one of `names`; a form of another web page is
        refused (`airloom.browser_guard`).
        """
        self._letters, self._post, self.names = letters, post, frozenset(names)
        mail = self

        class Handler(Answering):
            protocol_version = "HTTP/1.1"
            timeout = _PATIENCE

            def do_GET(self) -> None:
                self._answer(mail.get(self.path) if self._may() else _Answer(403, _REFUSED))

            do_HEAD = do_GET

            def do_POST(self) -> None:
                if not self._may() or comes_from_another_page(self.headers):
                    self.close_connection = True
                    return self._answer(_Answer(403, _REFUSED))
                if (length := self.length(_MOST)) is None:
                    self.close_connection = True
                    return self._answer(_Answer(413, decks.told("Not sent", "The letter is too long.")))
                self._answer(mail.posted(self.path, self.rfile.read(length)))

            def _may(self) -> bool:
                return is_meant_for_us(self.headers, mail.names)

            def _answer(self, answer: _Answer) -> None:
                self.answer(answer.status, decks.TYPE, answer.deck.encode(), {"Cache-Control": "no-cache"})

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.address: tuple[str, int] = (host, self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def get(self, target: str) -> _Answer:
        """The deck at a path."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        first = {name: values[0] for name, values in query.items()}
        begin = int(first["from"]) if first.get("from", "").isdecimal() and len(first["from"]) < 10 else 0
        if path == "/":
            letters = self._letters.all()
            return _Answer(200, decks.menu(sum(not letter.is_seen for letter in letters), len(letters)))
        if path == "/inbox":
            return _Answer(200, decks.inbox(self._letters.all(), begin))
        if path == "/write":
            return _Answer(200, decks.write(first.get("to", ""), first.get("subject", "")))
        if path.startswith("/letter/") and (letter := self._letters.find(unquote(path.removeprefix("/letter/")))):
            return _Answer(200, decks.letter(letter, begin))
        return _Answer(404, decks.told("Mail", "There is no such page."))

    def posted(self, target: str, body: bytes) -> _Answer:
        """What becomes of a form."""
        if urlsplit(target).path != "/send":
            return _Answer(404, decks.told("Mail", "There is no such page."))
        form = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        try:
            self._post.send(form.get("to", ""), form.get("subject", ""), form.get("text", ""))
        except ValueError as error:
            return _Answer(200, decks.told("Not sent", f"This cannot be sent: {error}."))
        except OSError as error:
            return _Answer(200, decks.told("Not sent", f"The mail server did not take it: {one_line(error)}"))
        return _Answer(200, decks.told("Sent", f"Sent to {form['to']}."))

    def close(self) -> None:
        """Takes no further request."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
