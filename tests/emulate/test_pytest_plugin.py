"""The plug-in of pytest: links for other people's tests."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.pytest_plugin import _any_asks
from tests import documents
from tests.conftest import needs, needs_laboratory
from tests.emulate.rights import User, ourselves, plain
from tests.emulate.video import RECORD

pytestmark = pytest.mark.emulate


@pytest.fixture(params=["ourselves", "plain"])
def user(request: pytest.FixtureRequest, tmp_path: Path) -> User:
    """Root, and a plain user. Somebody with three capabilities enters a link as root does."""
    needs_laboratory()
    return ourselves(tmp_path) if request.param == "ourselves" else plain(request.getfixturevalue("copies"))


def run(user: User, text: str, *options: str, name: str = "test_it.py") -> tuple[int, str]:
    """Runs pytest on a file with this text, in a folder of its own, with nothing of this repository's settings.

    `FIXTURE` stands for the fixture: no file here asks for a link, as it would for a plain user's pytest.
    """
    place = user.folder / f"case-{len(list(user.folder.glob('case-*')))}"
    place.mkdir()
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / name).write_text(text.replace("FIXTURE", "airloom"))
    if user.name != "root":
        os.chown(place, *((os.stat(user.folder)).st_uid, (os.stat(user.folder)).st_gid))
    done = user._replace(folder=place).python("-m", "pytest", "-p", "no:cacheprovider", *options)
    return done.returncode, done.stdout + done.stderr


PING = """\
import subprocess

def test_ping(FIXTURE):
    with airloom as link:
        done = subprocess.run(["ping", "-nc", "1", link.peer], capture_output=True, text=True)
    assert float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) >= 300
    assert link.summary["packets"] >= 2
    assert airloom.summary is link.summary
"""


def test_children_of_a_test_are_behind_the_link(user: User) -> None:
    code, said = run(user, PING)
    assert code == 0, said
    assert "1 passed" in said


MARKED = """\
import subprocess, pytest

@pytest.mark.FIXTURE("wireline", "wpt/3g", seed=7, delay="50ms")
def test_each(FIXTURE):
    with airloom as link:
        done = subprocess.run(["ping", "-nc", "1", link.peer], capture_output=True, text=True)
    assert float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) >= 100
    assert airloom.seed == 7 == link.scenario.seed

@pytest.mark.FIXTURE("wireline", delay="70ms")
def test_without_the_fixture():
    done = subprocess.run(["ping", "-nc", "1", "origin"], capture_output=True, text=True)
    assert float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) >= 140
"""


def test_a_mark_runs_a_test_once_per_link_and_needs_no_fixture(user: User) -> None:
    code, said = run(user, MARKED, "-v")
    assert code == 0, said
    assert "test_each[wireline] PASSED" in said
    assert "test_each[wpt/3g] PASSED" in said
    assert "test_without_the_fixture[wireline] PASSED" in said


CLASSES = """\
import pytest

class Checks:
    def test_page(self):
        pass

@pytest.mark.FIXTURE("umts-hsdpa")
class TestLink(Checks):
    pass

class TestPlain(Checks):
    pass
"""


def test_the_mark_of_a_class_is_not_that_of_others_with_the_same_test(tmp_path: Path) -> None:
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, CLASSES, "--collect-only", "-q")
    assert code == 0, said
    assert {"test_it.py::TestLink::test_page[umts-hsdpa]", "test_it.py::TestPlain::test_page"} <= {*said.splitlines()}


def asks(root: Path, *given: str, here: Path | None = None, testpaths: tuple[str, ...] = ()) -> bool:
    """Is pytest started anew, where it is not root's?"""
    config: Any = SimpleNamespace(
        rootpath=root,
        invocation_params=SimpleNamespace(dir=here or root),
        known_args_namespace=SimpleNamespace(file_or_dir=[*given]),
        getini={"testpaths": [*testpaths], "norecursedirs": []}.__getitem__,
    )
    return _any_asks(config)


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("def test_it(FIXTURE): ...", True),
        ("def test_it(tmp_path: Path, FIXTURE: TestLink) -> None: ...", True),
        ("def test_it(\n    page: Annotated[Page, of((1, 2))],\n    *,\n    FIXTURE,\n): ...", True),
        ("def test_it(tmp_path: Path) -> None:\n    print(tmp_path, FIXTURE)", False),
        ("def helper(link: FIXTURE.Link): ...", False),
    ],
)
def test_a_test_asks_for_a_link_by_a_parameter_whatever_is_said_of_the_others(
    tmp_path: Path, text: str, does: bool
) -> None:
    (tmp_path / "test_it.py").write_text(text.replace("FIXTURE", "airloom"))
    assert asks(tmp_path, "test_it.py::test_it") is does


def test_a_fixture_above_a_test_asks_for_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text("def page(FIXTURE): ...".replace("FIXTURE", "airloom"))
    (tmp_path / "tests" / "test_it.py").write_text("def test_it(page): ...")
    assert asks(tmp_path, "tests/test_it.py")


def test_testpaths_are_patterns_and_count_in_the_root_alone(tmp_path: Path) -> None:
    place = tmp_path / "src" / "one" / "tests"
    place.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (place / "test_it.py").write_text("def test_it(FIXTURE): ...".replace("FIXTURE", "airloom"))
    assert asks(tmp_path, testpaths=("src/*/tests",))
    assert asks(tmp_path, here=place, testpaths=("tests",))
    assert not asks(tmp_path, testpaths=("docs",))


SERVED = """\
import http.server, json, subprocess, sys, time, urllib.request
import airloom as al

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["REMOTE_ADDR"].encode()]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

def fetch(url):
    return urllib.request.urlopen(url, timeout=20)

def test_applications(FIXTURE, tmp_path):
    (tmp_path / "file.txt").write_text("from a folder")
    airloom.serve(wsgi)
    for _ in range(2):  # in each block
        with airloom as link:
            assert fetch(f"http://{link.peer}/").read().decode() == link.hosts["mobile"][0]
            second = airloom.serve(Handler)
            assert second.port != 80
            assert fetch(second.url).status == 204
            assert fetch(al.serve(tmp_path, 8080).url + "file.txt").read() == b"from a folder"
            start = time.monotonic()
            fetch("http://origin/").close()
            assert time.monotonic() - start > 0.6  # two round trips

def test_programs(FIXTURE):
    with airloom as link:
        served = link.serve([sys.executable, "-m", "http.server", "8000"], 8000)
        assert fetch(served.url).status == 200

def test_what_never_listens(FIXTURE):
    with airloom as link:
        for command, said in (("echo no >&2; exit 3", "ended with 3: no"), ("sleep 100", "within 0.3 s")):
            try:
                link.serve(command, 8000, timeout_s=0.3)
            except al.RunError as error:
                assert said in str(error)
            else:
                assert False
"""


def test_servers_listen_at_the_far_end(user: User) -> None:
    code, said = run(user, SERVED)
    assert code == 0, said
    assert "3 passed" in said


FAILS = """\
import subprocess, urllib.request

def app(environ, start_response):
    start_response("200 OK", [])
    return [b"x" * 5000]

def test_fails(FIXTURE):
    airloom.serve(app)
    with airloom as link:
        assert urllib.request.urlopen(f"http://{link.peer}/").read() == b"y"

def test_passes(FIXTURE):
    with airloom as link:
        subprocess.run(["ping", "-nc", "1", link.peer])
"""


def test_results_of_a_test_that_failed_are_kept_and_named(tmp_path: Path) -> None:
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, FAILS, "--airloom-keep=failed", "--airloom-link=wireline")
    assert code == 1, said
    assert "airloom: wireline, seed 1" in said
    (folder,) = (tmp_path / "case-0" / "airloom-results").iterdir()
    assert "test_fails" in folder.name
    assert f"results in {folder}" in said
    there = {file.name for file in folder.iterdir()}
    assert {"trace.pcapng", "packets.parquet", "summary.json", "report.html"} <= there
    assert all(name in said for name in there)
    code, said = run(user, FAILS, "--airloom-link=wireline")
    assert "--airloom-keep=failed" in said
    assert not (tmp_path / "case-1" / "airloom-results").exists()


ALIKE = """\
import pytest

@pytest.mark.parametrize("sign", ["<", ">"])
def test_f(FIXTURE, sign):
    with airloom:
        assert sign == ">"
"""


def test_results_of_tests_whose_ids_are_alike_are_in_folders_of_their_own(tmp_path: Path) -> None:
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, ALIKE, "--airloom-keep=failed", "--airloom-link=wireline")
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    (folder,) = (tmp_path / "case-0" / "airloom-results").iterdir()
    assert f"results in {folder}" in said
    assert (folder / "report.html").exists()


def test_where_there_are_no_links_tests_are_skipped_with_the_reason_or_fail(tmp_path: Path) -> None:
    forbid = "from airloom import _core\nimport airloom.laboratory\n_core.rights = lambda: ('none', False)\n"
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, forbid + PING, "-rs")
    assert code == 0, said
    assert re.search(r"SKIPPED .* may not enter a laboratory: start it with", said)
    code, said = run(user, forbid + PING, "--airloom-required")
    assert code == 1
    assert "--airloom-required: this process may not enter" in said


def test_a_link_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, PING, "--airloom-link=wpt/3gg", "--tb=line")
    assert code == 1
    assert "nothing called 'wpt/3gg' to emulate (did you mean wpt/3g?)" in said


LEFT = """\
import os, subprocess, time

def test_forks_a_daemon(FIXTURE):
    with airloom as link:
        subprocess.run(["sh", "-c", "setsid sleep 8643217 >/dev/null 2>&1 & echo $!"], check=True)
        child = subprocess.Popen(["sleep", "8643218"])
        program = link.popen(["sleep", "8643219"])
    assert child.wait(60) == -9
    assert program.poll() < 0

def test_nothing_is_left_of_it():
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = open(f"/proc/{entry}/cmdline", "rb").read()
        except OSError:
            continue
        assert not words.startswith(b"sleep\\x00864321"), words
"""


def test_what_a_test_leaves_behind_ends_with_its_link(user: User) -> None:
    code, said = run(user, LEFT)
    assert code == 0, said


def test_tests_of_unittest_have_links_too(user: User) -> None:
    text = (
        "import subprocess, unittest, airloom, pytest\n"
        "class Case(unittest.TestCase):\n"
        "    def test_plain(self):\n"
        "        with airloom.link('wireline', seed=3) as link:\n"
        "            self.assertEqual(subprocess.call(['ping', '-nqc', '1', link.peer]), 0)\n"
        "        self.assertGreater(link.summary['packets'], 0)\n"
        "    @pytest.mark.FIXTURE('wireline', delay='50ms')\n"
        "    @pytest.mark.usefixtures('FIXTURE')\n"
        "    def test_marked(self):\n"
        "        self.assertEqual(subprocess.call(['ping', '-nqc', '1', 'origin']), 0)\n"
    )
    code, said = run(user, text)
    assert code == 0, said
    assert "2 passed" in said


def test_workers_have_links_of_their_own(user: User) -> None:
    text = (
        "import os, pytest, urllib.request\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [os.environ['PYTEST_XDIST_WORKER'].encode()]\n"
        "@pytest.mark.FIXTURE('wireline')\n"
        "@pytest.mark.parametrize('number', range(12))\n"
        "def test_fetch(FIXTURE, number):\n"
        "    airloom.serve(app)\n"
        "    with airloom:\n"
        "        said = urllib.request.urlopen('http://origin/', timeout=30).read()\n"
        "    assert said.decode() == os.environ['PYTEST_XDIST_WORKER']\n"
    )
    code, said = run(user, text, "-n", "4")
    assert code == 0, said
    assert "12 passed" in said


def test_the_same_seed_loses_the_same_datagrams(user: User) -> None:
    text = (
        "import socket\n"
        "def seen(FIXTURE, seed):\n"
        "    airloom.seed = seed\n"
        "    with airloom as link, link.socket('origin', type=socket.SOCK_DGRAM) as far:\n"
        "        far.bind(('', 9))\n"
        "        far.settimeout(0.5)\n"
        "        with socket.socket(type=socket.SOCK_DGRAM) as near:\n"
        "            for number in range(100):\n"
        "                near.sendto(bytes([number]), (link.peer, 9))\n"
        "        got = []\n"
        "        try:\n"
        "            while True:\n"
        "                got += far.recv(9)\n"
        "        except TimeoutError:\n"
        "            return got\n"
        "import pytest\n"
        "@pytest.mark.FIXTURE('wireline', loss=0.2)\n"
        "def test_pattern(FIXTURE):\n"
        "    first, again, other = seen(airloom, 7), seen(airloom, 7), seen(airloom, 8)\n"
        "    assert first == again != other\n"
        "    assert 60 < len(first) < 95\n"
    )
    code, said = run(user, text)
    assert code == 0, said


def test_a_plugin_that_nobody_uses_costs_nothing_heavy() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import airloom.pytest_plugin\n"
        "print(*sorted(name for name in set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("airloom")}
    assert ours == {"airloom", "airloom._core", "airloom._startup", "airloom.errors", "airloom.pytest_plugin"}
    assert not {"numpy", "polars", "scipy", "rich", "typer"} & set(done.stdout.split())


GUIDE = (documents.ROOT / "docs" / "guides" / "tests.md").read_text()
TESTS = [block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "def test" in block]


@pytest.mark.parametrize("number", range(len(TESTS)))
def test_tests_in_the_guide_pass(tmp_path: Path, number: int) -> None:
    user = User("root", [sys.executable], dict(os.environ), tmp_path)
    code, said = run(user, TESTS[number])
    assert code == 0, said
    assert "passed" in said


CLIENTS = """\
import asyncio
import aiohttp, httpx
from aiohttp import web

async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["client"][0].encode()})

async def hello(request):
    return web.Response(text=request.remote)

def test_httpx(FIXTURE):
    with airloom as link:
        server = link.serve(asgi)
        with httpx.Client(timeout=30) as client:
            assert client.get(server.url).text == link.hosts["mobile"][0]
    assert link.summary["packets"] > 8
    assert min(link.summary["bytes_up"], link.summary["bytes_down"]) > 200

def test_aiohttp(FIXTURE):
    async def fetch(url):
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()

    app = web.Application()
    app.add_routes([web.get("/", hello)])
    with airloom as link:
        assert asyncio.run(fetch(link.serve(app).url)) == link.hosts["mobile"][0]
"""


def test_applications_and_clients_of_others_work(user: User) -> None:
    code, said = run(user, CLIENTS)
    assert code == 0, said


PAGE = """\
import pytest

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/html")])
    return [b"<title>over the link</title>"]

@pytest.mark.FIXTURE("wireline", delay="100ms")
def test_page(FIXTURE):
    with airloom as link:
        page = link.page(link.serve(app).url)
        assert page.title() == "over the link"
    assert 0.4 <= link.summary["page_load_s"] < 20
"""


def test_a_browser_is_born_behind_the_link(user: User) -> None:
    needs("chromium")
    code, said = run(user, PAGE, "--airloom-keep=all")
    assert code == 0, said
    hars = list(user.folder.glob("case-*/airloom-results/*/page-1.har"))
    assert hars
    assert all('"url"' in har.read_text() for har in hars)


VIDEO = """\
RECORD = '''{record}'''
video = b""

def app(environ, start_response):
    if environ["PATH_INFO"] == "/":
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<video muted onloadeddata=this.play() src=/video></video>"]
    start_response("200 OK", [("Content-Type", "video/webm"), ("Content-Length", str(len(video)))])
    return [video]

def seen(link):
    page = link.page(link.serve(app).url)
    page.wait_for_function("document.querySelector('video').ended || document.querySelector('video').currentTime > 2.5")

def test_a_video_freezes_where_the_link_is_too_slow_for_it(airloom):
    global video
    with airloom as link:
        video = bytes(link.page().evaluate(RECORD))
        assert len(video) > 40_000
    with airloom as link:
        seen(link)
    smooth = link.summary
    with airloom as link:
        link.control.change("link", rate=f"{len(video)}bit/s")  # three eighths of what it takes
        seen(link)
    slow = link.summary
    # A busy machine may stop for a moment by itself.
    assert slow["freezes"] >= 1, (smooth, slow)
    assert slow["freeze_s"] > smooth["freeze_s"] + 0.5, (smooth, slow)
"""


def test_freezes_of_videos_are_counted(tmp_path: Path) -> None:
    needs("chromium")
    needs_laboratory()
    code, said = run(ourselves(tmp_path), VIDEO.replace("{record}", RECORD))
    assert code == 0, said
