import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs, needs_laboratory
from tests.emulate import rights

#: How long something that ends away by and by may take.
PATIENCE_S = 60.0

#: A shell command that waits until no TCP connection of its host is open or about to close.
ALL_CLOSED = (
    "for n in $(seq 600); do grep -qE ' (01|04|05|08|09|0B) ' /proc/net/tcp /proc/net/tcp6 || break; sleep 0.05; done"
)


@pytest.fixture
def laboratory() -> None:
    """For whole files: the test is skipped where laboratories cannot be made."""
    needs_laboratory()


@pytest.fixture
def curl() -> None:
    """The same where there is no curl."""
    needs("curl")


@pytest.fixture(scope="session")
def copies() -> Iterator[Path]:
    """A copy of the package that everybody can use; pytest's own folders are for their owner only."""
    with tempfile.TemporaryDirectory(prefix="airloom-everybody-") as place:
        rights.copy_for_everybody(Path(place))
        yield Path(place)


@pytest.fixture(params=["ourselves", "plain", "capable"])
def user(request: pytest.FixtureRequest, tmp_path: Path) -> rights.User:
    """Each kind of user in turn."""
    needs_laboratory()
    if request.param == "ourselves":
        return rights.ourselves(tmp_path)
    place = request.getfixturevalue("copies")
    return rights.plain(place) if request.param == "plain" else rights.capable(place)


@pytest.fixture(autouse=True)
def _ctrl_c_is_not_ignored() -> Iterator[None]:
    """A job that a shell put into the background ignores SIGINT, and so would what it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
