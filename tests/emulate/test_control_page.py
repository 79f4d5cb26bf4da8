"""The page of a live control, in a real browser; and what it refuses."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

import airloom as al
from airloom.control.desk import Desk
from airloom.control.page import TOKEN, Page
from tests.conftest import needs_laboratory
from tests.emulate.test_control import LIMIT_S, SCENARIO

pytestmark = pytest.mark.emulate


@pytest.fixture
def lab() -> Iterator[al.Lab]:
    needs_laboratory()
    Path("circuits.toml").write_text(SCENARIO)
    with al.lab("circuits.toml", seed=3, enter=False) as made:
        yield made


@pytest.fixture
def page(lab: al.Lab) -> Iterator[Page]:
    made = Page(0)
    made.start(Desk(lab.control))
    yield made
    made.close()


def _ask(page: Page, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """What the page answers to a request with the token and these headers instead of the usual ones."""
    address = urlsplit(page.address)
    port = address.port or 0
    given = {"Host": f"127.0.0.1:{port}", TOKEN: address.fragment}
    given |= {name.replace("_", "-"): value.replace("PORT", str(port)) for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        octets = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        connection.request(method, path, octets, given)
        answer = connection.getresponse()
        read = answer.read()
        return answer.status, json.loads(read) if answer.headers["Content-Type"] == "application/json" else {}
    finally:
        connection.close()


expect.set_options(timeout=LIMIT_S * 1000)

RELEASE = {"target": "bundle.member.1", "set": {"state": "down"}}


#: Keeps each text that the page has from now on.
KEEP = """() => {
    window.shown = [];
    new MutationObserver(() => window.shown.push(document.body.innerText))
        .observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
}"""


def test_buttons_and_keys_release_and_set_up_circuits(page: Page, lab: al.Lab, browser: Browser) -> None:
    context = browser.new_context(color_scheme="dark")
    try:
        view = context.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        view.on("console", lambda m: complaints.append(m.text))
        view.on("pageerror", lambda e: complaints.append(str(e)))
        view.on("request", lambda r: asked.append(r.url))
        view.goto(page.address)
        row = view.get_by_role("row").filter(has=view.get_by_role("rowheader", name="bundle.member.1"))
        view.get_by_role("button", name="Release bundle.member.1").click()
        expect(row).to_contain_text("down")
        expect(view.get_by_role("status")).to_contain_text("bundle.member.1 state down")
        # By name to whoever cannot see it, by key to whoever has no mouse; the focus stays where it was.
        button = view.get_by_role("button", name="Set up bundle.member.1")
        expect(button).to_be_focused()
        # That lasts two seconds only: the page itself keeps what it showed.
        view.evaluate(KEEP)
        view.keyboard.press("2")
        expect(row).to_contain_text("● up", timeout=LIMIT_S * 1000)
        assert any("setting up" in text for text in view.evaluate("window.shown"))
        view.keyboard.press("1")
        expect(view.get_by_role("button", name="Set up bundle.member.0")).to_be_visible()
        assert view.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert complaints == []
        here = page.address.split("#")[0]
        assert {url for url in asked if not url.startswith("data:")} <= {
            here + "#" + page.address.split("#")[1],
            here + "state",
            here + "change",
            here,
        }
    finally:
        context.close()
    assert [c["target"] for c in lab.control.changes] == ["bundle.member.1", "bundle.member.1", "bundle.member.0"]


def test_faults_have_switches(browser: Browser) -> None:
    needs_laboratory()
    with al.lab("wireline", overrides={"faults.drop.rate": 0.5}, enter=False) as lab:
        page = Page(0)
        page.start(Desk(lab.control))
        view = browser.new_page()
        try:
            view.goto(page.address)
            row = view.get_by_role("row").filter(has=view.get_by_role("rowheader", name="link.faults.drop"))
            expect(row).to_contain_text("● on")
            view.get_by_role("button", name="Switch off link.faults.drop").click()
            expect(row).to_contain_text("○ off")
            expect(view.get_by_role("status")).to_contain_text("link faults drop off")
            view.get_by_role("button", name="Switch on link.faults.drop").click()
            expect(row).to_contain_text("● on")
        finally:
            view.close()
            page.close()
        made = [change["set"] for change in lab.control.changes]
    assert made == [{"faults": {"drop": "off"}}, {"faults": {"drop": "on"}}]


def test_a_page_of_somebody_else_cannot_press_the_buttons(page: Page, lab: al.Lab, browser: Browser) -> None:
    here = page.address.split("#")[0]
    context = browser.new_context()
    try:
        view = context.new_page()
        view.route(
            "http://elsewhere.example/", lambda route: route.fulfill(body="<p>come in", content_type="text/html")
        )
        view.goto("http://elsewhere.example/")
        body = json.dumps(json.dumps(RELEASE))
        # Without the header it is sent, and refused; with it the browser asks first, and gets no leave.
        for headers in ("{}", f'{{"{TOKEN}": "{page.address.split("#")[1]}"}}'):
            done = view.evaluate(
                f"fetch('{here}change', {{method: 'POST', body: {body}, headers: {headers}}})"
                ".then(() => 'read', () => 'refused')"
            )
            assert done == "refused"
        view.evaluate(f"fetch('{here}change', {{method: 'POST', mode: 'no-cors', body: {body}}}).catch(() => 0)")
    finally:
        context.close()
    assert lab.control.changes == []


def test_requests_for_another_name_from_another_page_or_without_the_token_are_refused(page: Page, lab: al.Lab) -> None:
    for headers in (
        {"Host": "rebound.example:PORT"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Sec_Fetch_Site": "cross-site"},
        {"X_Airloom_Token": "guessed"},
        {"X_Airloom_Token": ""},
    ):
        status, said = _ask(page, "POST", "/change", RELEASE, **headers)
        assert status == 403, headers
        assert "rows" not in said
    assert _ask(page, "GET", "/state", X_Airloom_Token="guessed")[0] == 403
    assert _ask(page, "GET", "/state", Host="rebound.example")[0] == 403
    assert _ask(page, "GET", "/", Host="rebound.example")[0] == 403
    assert lab.control.changes == []
    status, said = _ask(page, "POST", "/change", RELEASE, Origin="http://localhost:PORT", Host="localhost:PORT")
    assert status == 200
    # It is lost until the bundle has noticed.
    assert said["rows"][2]["state"] in ("lost", "down")


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", 400, "expected an object"),
        (b"[" * 4000, 400, "expected an object"),
        (b'{"target": 3}', 400, "expected an object"),
        (b"\xff\xfe", 400, "expected an object"),
        (b"x" * 4097, 413, "at most 4096"),
        (b'{"target": "bundle", "set": {"loss": NaN}}', 400, "expected an object"),
        (b'{"target": "bundle", "set": {"rate": 1e400}}', 400, "expected an object"),
        (b'{"target": "bundle", "set": {"state": "\\ud800"}}', 400, "expected an object"),
        (b'{"target": "bundle.member.7", "set": {"state": "down"}}', 200, "no such member"),
        (b'{"target": "bundle", "set": null}', 200, "expected the changes"),
    ],
)
def test_what_makes_no_sense_is_said_and_changes_nothing(
    page: Page, lab: al.Lab, body: bytes, status: int, word: str
) -> None:
    got, said = _ask(page, "POST", "/change", body)
    assert got == status
    assert word in said.get("error", said.get("said", ""))
    assert lab.control.changes == []
    assert _ask(page, "GET", "/elsewhere")[0] == 404
    assert _ask(page, "GET", "/state")[1]["rows"][0]["state"] == "up"


def test_a_length_of_thousands_of_digits_is_too_long(page: Page, lab: al.Lab) -> None:
    assert _ask(page, "POST", "/change", b"", **{"Content-Length": "9" * 5000})[0] == 413


def test_a_port_that_is_taken_is_said_before_anything_begins(lab: al.Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "airloom", "emulate", "circuits.toml", "--control-page", port, "--", "true"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2
    assert f"--control-page {port}: Address already in use" in done.stderr


def test_ctrl_c_ends_the_run_and_its_page() -> None:
    needs_laboratory()
    Path("circuits.toml").write_text(SCENARIO)
    words = [sys.executable, "-m", "airloom", "emulate", "circuits.toml", "--control-page", "0", "--", "sleep", "60"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = urlsplit(process.stderr.readline().split()[-1])
        end = time.monotonic() + LIMIT_S
        while True:
            with socket.create_connection(("127.0.0.1", address.port or 0), timeout=LIMIT_S) as client:
                asked = f"GET /state HTTP/1.0\r\nHost: {address.netloc}\r\n{TOKEN}: {address.fragment}\r\n\r\n"
                client.sendall(asked.encode())
                answer = client.makefile("rb").read()
            if b'"bundle.member.2"' in answer:
                break
            assert time.monotonic() < end, answer
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 128 + signal.SIGINT
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", address.port or 0), timeout=LIMIT_S)
    assert [p.name for p in Path.cwd().iterdir()] == ["circuits.toml"]
