"""E-mail for phones of WAP: an origin server of decks, mail out over SMTP, and notice of new mail by push.

    phone ── WSP ── gateway ── HTTP ── MailServer (server.py) ── decks.py
                       ▲                  │  letters out: SMTP
                       │ PAP              ▼
                       └── Noticer (notice.py) ── Letters (letters.py): a Maildir, filled by whatever delivers mail

It has one user, and believes whoever can connect: it listens on loopback unless told.
"""

from __future__ import annotations

from airloom.wap.mail.letters import Letter, Letters
from airloom.wap.mail.notice import Noticer
from airloom.wap.mail.server import MailServer, Post

__all__ = ["Letter", "Letters", "MailServer", "Noticer", "Post"]
