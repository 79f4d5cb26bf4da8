"""Whenever a test process is killed, nothing of its link is left five seconds later."""

import os
import random
import tempfile
import time
from pathlib import Path

import pytest

from tests.emulate import test_kills
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

#: In seconds.
LIMIT_S = 5.0

TEST = """\
import subprocess

def app(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]

def test_busy(FIXTURE):
    airloom.serve(app)
    while True:
        with airloom as link:
            subprocess.Popen(["sh", "-c", "setsid sleep {mark} & sleep {mark}"])
            link.popen(["sleep", "{mark}"])
            link.serve(["sh", "-c", "sleep {mark} & exec python3 -m http.server 8000"], 8000)
            for _ in range(20):
                subprocess.run(["sh", "-c", "(sleep {mark} &) ; sleep 0.02"])
"""


def left_of(mark: int, before: list[str], inside: set[str], since: float) -> list[str]:
    """What is left of a test; another test beside this one may have been given the number of one of its namespaces."""
    return [line for line in test_kills._left(mark, before, inside) if " in " not in line or not _is_newer(line, since)]


def _is_newer(line: str, than: float) -> bool:
    """Did this process begin after that many seconds of the machine's time (proc_pid_stat (5), starttime)?"""
    try:
        fields = Path(f"/proc/{line.split()[0]}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") > than


def kill(user: User, number: int, rng: random.Random) -> None:
    mark = 8_870_000 + rng.randrange(100_000)
    before = test_kills._network()
    place = Path(tempfile.mkdtemp(prefix="kill-", dir=user.folder))
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "test_busy.py").write_text(TEST.format(mark=mark).replace("FIXTURE", "airloom"))
    owner = os.stat(user.folder)
    os.chown(place, owner.st_uid, owner.st_gid)
    environment = {**user.environment, "AIRLOOM_TEST_MARK": str(mark)}
    after_s = rng.uniform(0.2, 3.0)
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--airloom-link=wireline"]
    with user._replace(folder=place, environment=environment).popen(words) as process:
        time.sleep(after_s)
        inside = test_kills._inside(mark) - test_kills._namespaces(process.pid)
        assert process.poll() is None, process.communicate()
        process.kill()
        killed, since = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
        while (left := left_of(mark, before, inside, since)) and time.monotonic() - killed < LIMIT_S:
            time.sleep(0.02)
        assert not left, f"kill {number} after {after_s:.3f} s: {left}"
        process.communicate(timeout=60)


def kills(user: User, count: int) -> None:
    if user.name == "capable":
        # It differs from the others in how namespaces are made, not in how they go.
        return
    rng = random.Random(user.name)
    for number in range(count):
        kill(user, number, rng)


def test_nothing_is_left_of_a_test_that_was_killed(user: User) -> None:
    kills(user, 3)


@pytest.mark.slow
def test_nothing_is_left_after_two_hundred_kills(user: User) -> None:
    kills(user, 200)


def test_nothing_is_left_of_workers_whose_pytest_was_killed(user: User) -> None:
    if user.name == "capable":
        return
    mark = 8_970_000 + random.Random(user.name).randrange(100_000)
    before = test_kills._network()
    place = Path(tempfile.mkdtemp(prefix="workers-", dir=user.folder))
    (place / "pytest.ini").write_text("[pytest]\n")
    for number in range(2):
        (place / f"test_busy_{number}.py").write_text(TEST.format(mark=mark).replace("FIXTURE", "airloom"))
    owner = os.stat(user.folder)
    os.chown(place, owner.st_uid, owner.st_gid)
    environment = {**user.environment, "AIRLOOM_TEST_MARK": str(mark)}
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--airloom-link=wireline", "-n", "2"]
    with user._replace(folder=place, environment=environment).popen(words) as process:
        end = time.monotonic() + 60
        while len([line for line in test_kills.marked(mark) if "sleep" in line]) < 6 and time.monotonic() < end:
            time.sleep(0.1)
        inside = test_kills._inside(mark) - test_kills._namespaces(process.pid)
        assert inside
        process.kill()
        killed, since = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
        while (left := left_of(mark, before, inside, since)) and time.monotonic() - killed < 2 * LIMIT_S:
            time.sleep(0.05)
        process.communicate(timeout=60)
    assert not left
