"""Notice of new mail: a service indication for each letter, by a gateway that takes pushes."""

from __future__ import annotations

import threading
from urllib.parse import quote

from airloom.closing import Closing
from airloom.wap.mail.letters import Letter, Letters
from airloom.wap.pap import Initiator, Method, PapError
from airloom.wap.service import INDICATION_TYPE, Indication


class Noticer(Closing):
    """Looks for new letters now and then, and pushes a notice of each until the gateway has accepted it."""

    def __init__(
        self,
        letters: Letters,
        initiator: Initiator,
        phone: str,
        url: str,
        *,
        method: Method = "preferconfirmed",
        every_s: float = 2.0,
    ) -> None:
        """`url` is where phones find the mail server, `phone` the address of IP of the one that is told."""
        self._letters, self._initiator, self._phone = letters, initiator, phone
        self._url, self._method, self._every_s = url.rstrip("/"), method, every_s
        self._over = threading.Event()
        #: Notices that a gateway has accepted, and the last failure.
        self.told: list[str] = []
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Tells of what is new."""
        for letter in self._letters.fresh():
            try:
                answer = self._initiator.push(
                    self._phone, self.indication(letter).document(), INDICATION_TYPE, method=self._method
                )
            except PapError as error:
                self.failure = str(error)
                return
            if not answer.is_taken:
                self.failure = f"{answer.code} {answer.words}"
                return
            self.failure = None
            self.told.append(answer.push_id)
            self._letters.told(letter.name)

    def indication(self, letter: Letter) -> Indication:
        """The notice of a letter."""
        text = "".join(c if c.isprintable() else " " for c in f"{letter.sender}: {letter.subject}")
        return Indication(f"{self._url}/letter/{quote(letter.name, safe='')}", "signal-medium", text[:200], letter.name)

    def close(self) -> None:
        """Looks no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self.look()
            except Exception as error:  # the next letters are still told of
                self.failure = f"{type(error).__name__}: {error}"
