"""Files over WWP on the loopback interface, through a wire that is as bad as wanted."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast
from unittest.mock import Mock, call

import pytest

from airloom import wwp
from airloom._core import WwpListener, WwpSession
from airloom.errors import UsageError
from airloom.wwp import receiver
from airloom.wwp.dialogue import Lines, Offer, TransferError, digest, partial
from airloom.wwp.receiver import _Pace
from tests.wwp.relay import Relay

SIZE = 700_001


class Post:
    """A receiver in a thread of its own."""

    def __init__(self, folder: Path, patience_s: float, **more: int) -> None:
        self.receiver = wwp.Receiver(folder, "127.0.0.1", 0, patience_s=patience_s, **more)
        self.got: list[Any] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                got = self.receiver.receive(0.1)
            except TransferError as error:
                self.got.append(error)
            else:
                if got is not None:
                    self.got.append(got)

    def port(self) -> int:
        return int(self.receiver.address.rpartition(":")[2])

    def stop(self) -> list[Any]:
        self._stopped.set()
        self._thread.join()
        return self.got


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def post(folder: Path) -> Iterator[Post]:
    made = Post(folder, 20.0)
    yield made
    made.stop()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "song.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_a_file_arrives_whole_under_its_name(file: Path, folder: Path, post: Post) -> None:
    shown: list[int] = []
    sent = wwp.send(file, "127.0.0.1", post.port(), shown=lambda done, _: shown.append(done))
    (got,) = post.stop()
    assert (folder / "song.bin").read_bytes() == file.read_bytes()
    assert [p.name for p in folder.iterdir()] == ["song.bin"]
    assert sent.sha256 == got.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (sent.resumed_at, got.resumed_at, got.size) == (0, 0, SIZE)
    assert shown == sorted(shown)
    assert shown[-1] == SIZE


class Draining:
    """A session whose peer takes a piece of what was written each time it is looked at, and says a word in the end."""

    def __init__(self, left: list[int], said: bytes) -> None:
        self._left, self._said = left, said

    @property
    def unacknowledged(self) -> int:
        return self._left[0]

    def read(self, most: int, wait_s: float) -> bytes | None:
        if len(self._left) > 1:
            self._left.pop(0)
            return None
        return self._said


@pytest.mark.parametrize("said", [b'{"good": true}\n', b""])
def test_what_waits_in_the_sender_s_buffer_is_shown_as_it_leaves(said: bytes) -> None:
    shown: list[int] = []
    lines = Lines(cast(Any, Draining([900, 900, 500, 100], said)), 60.0)
    lines.drain(shown.append)
    assert shown == [500, 100]
    if said:
        assert lines.line() == {"good": True}


@pytest.mark.parametrize("size", [0, 1, 1400])
def test_small_files_and_empty_ones_arrive_too(size: int, tmp_path: Path, folder: Path, post: Post) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"x" * size)
    wwp.send(path, "127.0.0.1", post.port(), name="another name")
    assert (folder / "another name").read_bytes() == b"x" * size


def test_a_receiver_that_hashes_and_syncs_for_long_is_waited_for(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = Offer("song.bin", SIZE, hashlib.sha256(file.read_bytes()).hexdigest())
    partial(folder, offer).write_bytes(file.read_bytes()[:1000])

    def slow(read: IO[bytes], shown: Callable[[int], None]) -> Any:
        for _ in range(40):
            time.sleep(0.1)
            shown(0)
        return digest(read)

    monkeypatch.setattr(receiver, "digest", slow)
    monkeypatch.setattr(receiver, "_BUSY_S", 0.2)
    monkeypatch.setattr(os, "fsync", lambda _: time.sleep(3))
    post = Post(folder, 20.0)
    assert wwp.send(file, "127.0.0.1", post.port(), patience_s=2.0).resumed_at == 1000
    (got,) = post.stop()
    assert got.path.read_bytes() == file.read_bytes()


def test_an_older_sender_hears_nothing_of_work_that_it_does_not_understand() -> None:
    lines = Mock()
    for knows in (False, True):
        receiver._Busy(lines, knows, 0.0).tell()
    assert lines.mock_calls == [call.say(busy=True)]


def test_loss_doubles_and_reordering_are_survived(file: Path, folder: Path, post: Post) -> None:
    with Relay(post.receiver.address, lose=0.05, double=0.05, swap=0.05) as relay:
        sent = wwp.send(file, "127.0.0.1", relay.port)
    assert (folder / "song.bin").read_bytes() == file.read_bytes()
    assert sent.resent > 0


def test_damaged_datagrams_count_as_lost_ones(file: Path, folder: Path, post: Post) -> None:
    with Relay(post.receiver.address, damage=0.05) as relay:
        sent = wwp.send(file, "127.0.0.1", relay.port)
    assert (folder / "song.bin").read_bytes() == file.read_bytes()
    assert sent.resent > 0


def test_strangers_who_do_not_see_the_transfer_change_nothing(file: Path, folder: Path, post: Post) -> None:
    host, _, port = post.receiver.address.rpartition(":")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        Relay(post.receiver.address) as relay,
    ):
        stranger.setblocking(False)
        answers = []

        def forge(datagram: bytes) -> None:
            # What it cannot know but has: the very datagram, from elsewhere. And what it can: units under other seals.
            for forged in (datagram, os.urandom(8) + datagram[8:], bytes(8) + datagram[8:], datagram[8:]):
                stranger.sendto(forged, (host, int(port)))
            with contextlib.suppress(BlockingIOError):
                answers.append(len(stranger.recv(65_536)))

        relay.seen = forge
        wwp.send(file, "127.0.0.1", relay.port)
    post.stop()
    assert (folder / "song.bin").read_bytes() == file.read_bytes()
    # The first datagram is a greeting, which anybody may send: it is told that the receiver is busy, or welcome.
    assert all(length == 64 for length in answers)
    assert len(answers) <= 8


def test_a_receiver_that_vanishes_is_given_up_and_the_transfer_goes_on_later(
    file: Path, folder: Path, tmp_path: Path
) -> None:
    post = Post(folder, 1.0)
    with Relay(post.receiver.address) as relay:
        relay.dies_after = 250
        with pytest.raises(TransferError, match="goes on where this ended"):
            wwp.send(file, "127.0.0.1", relay.port, patience_s=1.0)
    (part,) = folder.iterdir()
    assert part.name.endswith(".part")
    sent = wwp.send(file, "127.0.0.1", post.port(), patience_s=20.0)
    got = post.stop()
    assert 0 < sent.resumed_at < SIZE
    assert isinstance(got[0], TransferError)
    assert got[1].resumed_at == sent.resumed_at
    assert (folder / "song.bin").read_bytes() == file.read_bytes()
    assert len(list(folder.iterdir())) == 1


def test_nobody_at_home_is_said(file: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TransferError, match=r"does not answer. Is `airloom wwp receive` running"):
            wwp.send(file, "127.0.0.1", silent.getsockname()[1], patience_s=0.5)


def test_a_file_that_is_there_is_not_sent_again_and_another_one_is_not_written_over(
    file: Path, folder: Path, post: Post
) -> None:
    (folder / "song.bin").write_bytes(file.read_bytes())
    assert wwp.send(file, "127.0.0.1", post.port()).resumed_at == SIZE
    (folder / "song.bin").write_bytes(b"mine")
    with pytest.raises(TransferError, match="is there already, and is another file"):
        wwp.send(file, "127.0.0.1", post.port())
    assert (folder / "song.bin").read_bytes() == b"mine"


def test_a_file_that_becomes_shorter_is_an_error_and_never_has_its_name(file: Path, folder: Path, post: Post) -> None:
    def cut(done: int, _: int) -> None:
        os.truncate(file, 300_000)

    with pytest.raises(TransferError, match="became shorter while it was sent"):
        wwp.send(file, "127.0.0.1", post.port(), shown=cut)
    post.stop()
    assert not (folder / "song.bin").exists()


def test_a_full_disk_is_told_to_the_sender_and_nothing_has_the_final_name(
    file: Path, folder: Path, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("airloom.wwp.receiver.os.fsync", full)
    with pytest.raises(TransferError, match="No space left on device"):
        wwp.send(file, "127.0.0.1", post.port())
    assert not (folder / "song.bin").exists()
    # Once there is room, what has arrived is not sent again.
    monkeypatch.undo()
    assert wwp.send(file, "127.0.0.1", post.port()).resumed_at == SIZE
    assert (folder / "song.bin").read_bytes() == file.read_bytes()


def test_a_disk_that_is_full_while_octets_still_come_is_told_too(tmp_path: Path, folder: Path, post: Post) -> None:
    file = tmp_path / "song.bin"
    file.write_bytes(os.urandom(6 * SIZE))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system refuses to write beyond this, as it does where nothing is left.
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, before[1]))
    try:
        with pytest.raises(TransferError, match="the receiver says: File too large"):
            wwp.send(file, "127.0.0.1", post.port())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.suffix for path in folder.iterdir()] == [".part"]
    assert 0 < wwp.send(file, "127.0.0.1", post.port()).resumed_at <= SIZE
    assert (folder / "song.bin").read_bytes() == file.read_bytes()


def test_a_file_that_changes_under_the_sender_is_found_out(file: Path, folder: Path, post: Post) -> None:
    def change(done: int, _: int) -> None:
        with file.open("r+b") as other:
            other.seek(SIZE - 10)
            other.write(b"0123456789")

    with pytest.raises(TransferError, match="changed while it was sent"):
        wwp.send(file, "127.0.0.1", post.port(), shown=change)
    post.stop()
    assert list(folder.iterdir()) == []


def test_what_was_kept_of_a_transfer_is_hashed_again(file: Path, folder: Path, post: Post) -> None:
    offer = Offer("song.bin", SIZE, hashlib.sha256(file.read_bytes()).hexdigest())
    partial(folder, offer).write_bytes(b"not what was sent")
    with pytest.raises(TransferError, match="not the file that was hashed"):
        wwp.send(file, "127.0.0.1", post.port())
    wwp.send(file, "127.0.0.1", post.port())
    assert (folder / "song.bin").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "x" * 300, ".bashrc", ".ssh", "-rf"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(TransferError, match="name of the file"):
        Offer.of({"name": name, "size": 1, "sha256": "0" * 64})


@pytest.mark.parametrize("line", [{"size": -1}, {"size": True}, {"size": "1"}, {"sha256": "0" * 63}, {"sha256": 5}])
def test_offers_that_make_no_sense_are_refused(line: dict[str, object]) -> None:
    with pytest.raises(TransferError, match="cannot be used"):
        Offer.of({"name": "a", "size": 1, "sha256": "0" * 64} | line)


@pytest.mark.parametrize("line", [b"[" * 1100, b"9" * 4090, b"\xff", b"[1]", b'"' + b"x" * 9000])
def test_a_line_that_is_none_ends_that_sender_alone(line: bytes, file: Path, post: Post) -> None:
    session = WwpSession.connect("127.0.0.1", post.port(), 5.0)
    session.write(line + b"\n", 1.0)
    session.finish()
    session.is_closed(2.0)
    session.reset()
    wwp.send(file, "127.0.0.1", post.port())
    error, got = post.stop()
    assert isinstance(error, TransferError)
    assert "has not said what it should" in str(error)
    assert got.size == SIZE


def test_who_has_finished_hears_at_once_that_nothing_more_is_taken(file: Path, post: Post) -> None:
    session = WwpSession.connect("127.0.0.1", post.port(), 5.0)
    session.finish()
    began = time.monotonic()
    with pytest.raises(BrokenPipeError, match="this side has finished"):
        session.write(b"more", 30.0)
    assert time.monotonic() - began < 10
    session.reset()
    wwp.send(file, "127.0.0.1", post.port())
    assert post.stop()[-1].size == SIZE


@pytest.mark.parametrize("line", [b"[" * 1100 + b"\n", b"{}\n"])
def test_a_receiver_that_says_nonsense_is_an_error_of_the_transfer(line: bytes, file: Path) -> None:
    listener = WwpListener("127.0.0.1", 0)
    port = int(listener.address.rpartition(":")[2])

    def answer() -> None:
        session = listener.accept(20.0, 5.0)
        assert session is not None
        session.read(4096, 5.0)
        session.write(line, 1.0)
        session.finish()
        session.is_closed(5.0)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    with pytest.raises(TransferError):
        wwp.send(file, "127.0.0.1", port, patience_s=5.0)
    thread.join()


def offer_of(file: Path) -> Offer:
    octets = file.read_bytes()
    return Offer(file.name, len(octets), hashlib.sha256(octets).hexdigest())


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(
    tmp_path: Path, file: Path, folder: Path, post: Post
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"untouched")
    part = partial(folder, offer_of(file))
    plants: list[Callable[[], None]] = [
        lambda: part.symlink_to(elsewhere),
        lambda: os.link(elsewhere, part),
        lambda: part.mkdir(),
    ]
    for plant in plants:
        plant()
        with pytest.raises(TransferError, match="is no file of ours"):
            wwp.send(file, "127.0.0.1", post.port())
        if part.is_dir() and not part.is_symlink():
            part.rmdir()
        else:
            part.unlink()
        assert elsewhere.read_bytes() == b"untouched"
        assert not (folder / file.name).exists()
    wwp.send(file, "127.0.0.1", post.port())
    assert (folder / file.name).read_bytes() == file.read_bytes()


def test_a_file_that_is_too_large_is_refused_before_its_octets(file: Path, folder: Path) -> None:
    post = Post(folder, 20.0, most_octets=SIZE - 1)
    with pytest.raises(TransferError, match=f"has {SIZE} octets; at most {SIZE - 1} are taken here"):
        wwp.send(file, "127.0.0.1", post.port())
    post.stop()
    assert list(folder.iterdir()) == []


def test_a_drop_now_and_then_is_no_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = _Pace(30.0, 0)
    for second in range(0, 30, 5):
        now[0] = 100.0 + second
        pace.check(second)
    now[0] = 130.0
    with pytest.raises(TransferError, match="less than 125 octets a second for 30 s"):
        pace.check(31)
    # One that is slow and goes on is a transfer.
    now[0] = 100.0
    pace = _Pace(30.0, 0)
    for minute in range(1, 10):
        now[0] = 100.0 + 60 * minute
        pace.check(60 * minute * 125)


def test_strangers_get_no_more_than_they_send(post: Post) -> None:
    host, _, port = post.receiver.address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        hello = bytes(8) + b"WWP2" + bytes([1, 0, 0, 0]) + b"nonce123" + bytes(40)
        for datagram in (hello, hello[:40], b"", b"x" * 9, os.urandom(1000), bytes(8) + hello[8:] + bytes(500)):
            stranger.settimeout(30 if datagram == hello else 0.3)
            stranger.sendto(datagram, (host, int(port)))
            try:
                answer = stranger.recv(65_536)
            except TimeoutError:
                answer = b""
            assert len(answer) <= len(datagram)
            assert bool(answer) == (datagram == hello)


def test_the_command_makes_the_folder_for_files_but_not_in_the_place_of_a_file(file: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "airloom", "wwp", "receive", "--listen", "127.0.0.1:0", "--once", "--into"]
    refused = subprocess.run([*words, str(file)], capture_output=True, text=True, check=False)
    assert (refused.returncode, "is no folder" in refused.stderr) == (2, True)
    with subprocess.Popen([*words, "new/inbox"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("listening on 127.0.0.1:"), said
        wwp.send(file, "127.0.0.1", int(said.rpartition(":")[2]))
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert (tmp_path / "new" / "inbox" / "song.bin").read_bytes() == file.read_bytes()


def test_a_folder_that_is_none_and_a_port_that_is_taken_are_said(tmp_path: Path, post: Post) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        wwp.Receiver(tmp_path / "nowhere", "127.0.0.1", 0)
    with pytest.raises(UsageError, match=r"127\.0\.0\.1"):
        wwp.Receiver(tmp_path, "127.0.0.1", post.port())
