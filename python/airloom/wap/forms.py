"""What a `go` with postfields sends (WML 1.3, 9.5.1): fields as one line, or as a multipart body of RFC 7578."""

from __future__ import annotations

import re
from itertools import count
from urllib.parse import urlencode

#: Media types of forms.
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"

Fields = list[tuple[str, str]]


def charset_of(fields: Fields, accepted: str) -> str:
    """The first character set of the list `accepted` that can express all fields; UTF-8 if there is none."""
    text = "".join(name + value for name, value in fields)
    for charset in re.split(r"[\s,]+", accepted.strip().lower()):
        try:
            text.encode(charset)
        except (LookupError, UnicodeEncodeError):
            continue
        return charset
    return "utf-8"


def query(fields: Fields, accepted: str = "") -> str:
    """The fields as they stand behind the question mark of an address."""
    return urlencode(fields, encoding=charset_of(fields, accepted))


def body(fields: Fields, enctype: str = URLENCODED, accepted: str = "") -> tuple[bytes, str]:
    """The fields as the body of a POST, and what that is. An `enctype` that is not known is the usual one."""
    charset = charset_of(fields, accepted)
    if enctype.strip().lower() == MULTIPART:
        return _multipart(fields, charset)
    said = URLENCODED if charset == "utf-8" else f"{URLENCODED}; charset={charset}"
    return urlencode(fields, encoding=charset).encode(), said


def _multipart(fields: Fields, charset: str) -> tuple[bytes, str]:
    values = [value.encode(charset) for _, value in fields]
    boundary = next(mark for n in count() if not any((mark := f"airloom-{n}").encode() in value for value in values))
    body = b""
    for (name, _), value in zip(fields, values, strict=True):
        # RFC 7578 (2): what would end the quoted name is escaped as in addresses.
        quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = [f"--{boundary}", f'Content-Disposition: form-data; name="{quoted}"']
        head += [f"Content-Type: text/plain; charset={charset}", "", ""]
        # Heads are read before the character set is known.
        body += "\r\n".join(head).encode() + value + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"{MULTIPART}; boundary={boundary}"
