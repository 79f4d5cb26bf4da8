"""JSON in files that may be anybody's: damaged, endless, or made to hurt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airloom.errors import UsageError, one_line

#: The largest file that is read, in octets: manifests have kilobytes, recordings of a browser some ten megabytes.
MOST = 256 << 20


def read_json(path: Path | str) -> Any:
    """What a file says. Raises `UsageError`, in one line: no JSON, nested too deep, or larger than `MOST`."""
    try:
        with Path(path).open("rb") as file:
            octets = file.read(MOST + 1)
        if len(octets) > MOST:
            raise UsageError(f"{path} is larger than {MOST >> 20} MiB, more than is read")
        return json.loads(octets.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path} cannot be read: it is nested too deep") from None
    except (ValueError, MemoryError) as error:
        raise UsageError(f"{path} cannot be read: {one_line(error)}") from None
