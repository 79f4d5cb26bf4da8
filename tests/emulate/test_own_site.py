"""`airloom load` of what is not its own: programs of this machine, hosts of an outside world that is a namespace."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import airloom as al
from airloom.errors import Unsupported
from airloom.page_load.site import Authority
from airloom.programs import needed
from tests.cli.shell import Done, airloom
from tests.conftest import needs, needs_laboratory
from tests.emulate.outside import SERVER, Machine, world
from tests.emulate.rights import UNUSED, User, ourselves
from tests.emulate.test_loopback import Page, served

pytestmark = pytest.mark.emulate


@pytest.fixture(autouse=True)
def _possible_here() -> None:
    needs_laboratory()
    needs("chromium")
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed")


class Site(Page):
    """A page with a script of another port of this machine, if its address says which; other paths are not there."""

    def do_GET(self) -> None:
        path, _, port = self.path.partition("?")
        if path != "/":
            self.send_error(HTTPStatus.NOT_FOUND, "Not Found")
            return
        picture = f'<script src="http://localhost:{port}/"></script>' if port else ""
        icon = '<link rel="icon" href="data:,">'
        self._answer(
            f"<!doctype html><title>Mine</title>{icon}<h1>Mine</h1><p>{self.headers['host']}</p>{picture}".encode()
        )


def load(*words: object) -> tuple[Done, list[dict[str, object]]]:
    """Runs `airloom load --json` over a quick link; what it said, and its document."""
    done = airloom("load", *map(str, words), "--link", "wpt/4g", "--json")
    return done, json.loads(done.out) if done.out else []


def requests(folder: str) -> list[tuple[str, int]]:
    found = json.loads((Path(folder) / "wpt-4g-none" / "load.json").read_text())["requests"]
    return [(request["url"].partition("//")[2], request["status"]) for request in found]


def test_a_page_of_this_machine_is_loaded_by_its_own_address_with_the_ports_that_are_allowed() -> None:
    with served(handler=Site) as port, served("::1") as other:
        page = f"http://localhost:{port}/?{other}"
        done, (said,) = load(page, "--loopback", other, "--out", "with")
        assert done.code == 0, done.err
        assert [status for _, status in requests("with")] == [200, 200]
        without, _ = load(page, "--out", "without")
    # The page is there all the same; what it may not ask fails.
    assert without.code == 0, without.err
    assert requests("without") == [(f"localhost:{port}/?{other}", 200), (f"localhost:{other}/", 0)]
    assert (said["status"], said["runs"][0]["valid"] in (True, False), said["requests"]) == (200, True, 2)  # type: ignore[index]
    assert 0 < float(str(said["speed_index_s"])) <= 10 * float(str(said["page_s"]))
    assert (Path("with") / "report.html").stat().st_size > 10_000
    # No folder of nginx's, nor anything else that is empty.
    assert [place for place in Path("with").rglob("*") if place.is_dir() and not any(place.iterdir())] == []


def test_exit_codes_that_a_build_can_trust() -> None:
    with served(handler=Site) as port:
        page = f"http://localhost:{port}"
        for words, code, line in (
            (
                (f"{page}/missing",),
                1,
                "wpt/4g, no proxy: the page's answer was 404 Not Found; --allow-status 404 takes it",
            ),
            ((f"{page}/missing", "--allow-status", 404), 0, ""),
            ((f"{page}/", "--timeout", 0.15), 1, "wpt/4g, no proxy: not loaded: not there within 0.15 s"),
            ((f"{page}/", "--strict", "1ns"), 3, "--strict 1ns: wpt/4g, no proxy: times are not valid: "),
            ((f"https://localhost:{port}/",), 1, "does that port speak TLS?"),
        ):
            done, said = load(*words)
            assert done.code == code, (words, done.err)
            assert line in done.err
            assert said[0]["valid"] in (True, False)
        assert said[0]["status"] is None


@pytest.mark.slow
def test_of_several_runs_the_median_is_shown() -> None:
    with served(handler=Site) as port:
        done, (said,) = load(f"http://localhost:{port}/", "--runs", 3, "--seed", 5, "--out", "three")
        assert done.code == 0, done.err
    runs = said["runs"]
    assert isinstance(runs, list)
    times = sorted(run["page_s"] for run in runs)
    assert [run["seed"] for run in runs] == [5, 6, 7]
    assert said["page_s"] == times[1]
    # Three numbers have no interval.
    assert said["interval_s"] is None
    assert sorted(place.name for place in Path("three/wpt-4g-none").iterdir()) == ["run-1", "run-2", "run-3"]
    again = airloom("load", f"http://localhost:{port}/", "--out", "three")
    assert again.code == 2
    assert "--force" in again.err


def test_a_plain_user_loads_it_too(user: User) -> None:
    if user.name != "plain":
        # Root does above.
        return
    with served(handler=Site) as port:
        words = [f"http://localhost:{port}/", "--link", "wpt/4g", "--json"]
        done = user.airloom("load", *words, "--out", user.folder / "own-site", "--force")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["status"] == 200


#: Of `wpt/4g`.
RTT_MS = 170


class Outside(NamedTuple):
    """A machine with a way to `staging.example`, which a certificate authority of the tests vouches for."""

    machine: Machine
    authority: Path
    names: Path

    def user(self, user: User, home: Path) -> User:
        """The user there, with a home in which nothing is trusted."""
        environment = {**user.environment, "HOME": str(home)}
        return self.machine.user(user._replace(environment=environment), resolv_conf=self.names)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    place, secrets = tmp_path_factory.mktemp("staging"), tmp_path_factory.mktemp("secrets")
    (place / "index.html").write_text(
        '<!doctype html><link rel="icon" href="data:,"><title>Staging</title><h1>Staging</h1>'
    )
    needs("openssl")
    Authority(secrets).certify("staging.example")
    with tempfile.TemporaryDirectory() as everybody, world(place, secrets / "staging.example.crt") as machine:
        (authority := Path(everybody) / "authority.crt").write_bytes((secrets / "authority.crt").read_bytes())
        (names := Path(everybody) / "resolv.conf").write_text(f"nameserver {SERVER}\n")
        Path(everybody).chmod(0o755)
        yield Outside(machine, authority, names)


@pytest.fixture
def there(user: User, outside: Outside) -> Iterator[User]:
    """Root, and a plain user, on the machine."""
    if user.name == "plain":
        needs("pasta")
    with tempfile.TemporaryDirectory() as home:
        if user.name != "root":
            os.chown(home, UNUSED, UNUSED)
        yield outside.user(user._replace(folder=Path(home)), Path(home))


def trust(there: User, authority: Path) -> None:
    """What mkcert does: the authority goes to the user's own NSS store, which Chromium asks."""
    certutil = needs("certutil")
    store = Path(there.environment["HOME"]) / ".pki" / "nssdb"
    store.mkdir(parents=True)
    for words in (["-N", "--empty-password"], ["-A", "-n", "tests", "-t", "C,,", "-i", str(authority)]):
        subprocess.run([certutil, "-d", f"sql:{store}", *words], check=True, capture_output=True)
    owner = there.folder.stat()
    for path in (store.parent, store, *store.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)


@pytest.mark.parametrize("way", ["none", "split-tcp"])
def test_a_secure_host_of_the_outside_world_is_loaded_by_its_own_certificate(
    there: User, outside: Outside, way: str
) -> None:
    if there.name == "capable":
        # In this respect it is root.
        return
    words = ["load", "https://staging.example/", "--link", "wpt/4g", "--proxy", way, "--json"]
    if way == "none":
        strange = there.airloom(*words, "--out", "strange")
        assert strange.returncode == 1, strange.stderr
        assert "net::ERR_CERT_AUTHORITY_INVALID" in strange.stderr
    trust(there, outside.authority)
    done = there.airloom(*words, "--out", "trusted")
    assert done.returncode == 0, done.stderr
    place = there.folder / "trusted" / f"wpt-4g-{way}"
    seen = json.loads((place / "load.json").read_text())
    assert (seen["answered"], seen["status"]) == ("https://staging.example/", 200)
    (request,) = seen["requests"]
    # The handshake of TLS, and the page: each a round trip through the link.
    for earlier, later in (("secure", "connected"), ("request", "response")):
        assert request[later] - request[earlier] >= RTT_MS, request
    flows = al.Run(place / "run").flows
    assert f"{SERVER}:443" in [*flows["dst"], *flows["src"]]


def test_a_program_in_a_laboratory_reaches_it_too(there: User, outside: Outside) -> None:
    curl = f"{needs('curl')} -sS -m 30 --cacert {outside.authority} https://staging.example/"
    options = ["--outside", "--set", "delay=30ms", "--out", "emulated"]
    done = there.airloom("emulate", "wireline", *options, "--", "sh", "-c", curl)
    assert done.returncode == 0, done.stderr
    assert "<h1>Staging</h1>" in done.stdout
    flow = al.Run(there.folder / "emulated").flows.filter(dst=f"{SERVER}:443").row(0, named=True)
    assert flow["proto"] == "tcp"
    strange = there.airloom(
        "emulate", "wireline", "--outside", "--", "curl", "-sS", "-m", "30", "https://staging.example/"
    )
    assert strange.returncode == 60, "curl: the certificate is nobody's that it knows"


@pytest.mark.parametrize("way", ["none", "split-tcp"])
def test_a_host_of_the_outside_world_is_loaded_by_a_name_that_this_machine_has_for_it(
    tmp_path: Path, outside: Outside, way: str
) -> None:
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost\n{SERVER} staging.example\n")
    there = outside.machine.user(ourselves(tmp_path), hosts=tmp_path / "hosts")
    done = there.airloom(
        "load", "http://staging.example/", "--link", "wpt/4g", "--proxy", way, "--out", "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads((tmp_path / "out" / f"wpt-4g-{way}" / "load.json").read_text())
    assert (seen["answered"], seen["status"]) == ("http://staging.example/", 200)
    flows = al.Run(tmp_path / "out" / f"wpt-4g-{way}" / "run").flows
    assert any(row.startswith(SERVER) for row in flows["dst"].to_list())


@pytest.mark.parametrize(("name", "package"), [("nginx", "nginx-light"), ("squid", "squid")])
def test_a_program_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(Unsupported, match=f"{name} is not installed: apt-get install {package}$"):
        needed(name)
