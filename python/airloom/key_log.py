"""The secrets of a capture as a key log (draft-ietf-tls-keylogfile), for programs that want a file beside it."""

from __future__ import annotations

import struct
from pathlib import Path

from airloom.errors import UsageError

_SECTION_HEADER, _DECRYPTION_SECRETS, _TLS_KEY_LOG = 0x0A0D0D0A, 0x0000000A, 0x544C534B

#: A block has a type and its length, and the length again at its end; more than this no capture of ours has in one.
_MOST = 1 << 24


def key_log(capture: Path) -> str:
    """The lines of all secrets in a pcapng file; empty if it has none. Raises `UsageError` if it is none of a run."""
    found = []
    with capture.open("rb") as blocks:
        if blocks.read(4) != struct.pack("<I", _SECTION_HEADER):
            raise UsageError(f"{capture} is no pcapng file of a run")
        blocks.seek(0)
        while head := blocks.read(8):
            kind, length = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
            if not 12 <= length <= _MOST or length % 4:
                raise UsageError(f"{capture} is cut or corrupt")
            if kind != _DECRYPTION_SECRETS:
                blocks.seek(length - 8, 1)
                continue
            block = blocks.read(length - 8)
            what, octets = struct.unpack_from("<II", block.ljust(8, b"\0"))
            if what == _TLS_KEY_LOG:
                found.append(block[8 : 8 + octets].decode("ascii", "replace"))
    return "".join(found)
