"""Page sets: the model, HAR files, folders, and what `http-client` makes of them."""

import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

import airloom as al
from airloom import page_sets
from airloom.errors import UsageError
from airloom.page_sets.page_set import Page, PageObject, PageSet
from tests.cli.shell import inside

BUILT_IN = Path(__file__).parents[2] / "crates/apps/src/pages/news-2004.json"

NETWORK = """
path = ["mobile", "wire", "origin"]
[hosts]
mobile = {{ app = {{ http-client = {{ page_set = "{file}", connections = 4 }} }} }}
origin = {{ app = "http-server" }}
[links]
wire = {{ bearer = "wireline", rate = "1Mbit/s", delay = "20ms" }}
[run]
record = ["objects"]
"""


def test_the_built_in_set_is_what_the_model_makes() -> None:
    assert page_sets.news().text() == BUILT_IN.read_text(encoding="utf-8")


def test_the_model_has_the_published_means() -> None:
    news = page_sets.news()
    pages, octets = len(news.pages), sum(p.octets for p in news.pages)
    assert octets / pages == pytest.approx(93_700, rel=0.001)
    assert sum(p.objects[0].size for p in news.pages) / octets == pytest.approx(0.44, abs=0.001)
    assert sum(len(p.objects) for p in news.pages) / pages == pytest.approx(25.7, rel=0.02)
    for page in news.pages:
        assert len({o.key for o in page.objects}) == len(page.objects)
        assert page.objects[0].changes


def test_another_seed_is_another_site_and_the_same_seed_the_same() -> None:
    assert page_sets.news(7, 10) == page_sets.news(7, 10)
    assert page_sets.news(7, 10) != page_sets.news(8, 10)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    news = page_sets.news(3, 4)
    news.write(tmp_path / "set.json")
    assert page_sets.read(tmp_path / "set.json") == news


def entry(url: str, octets: int, media: str = "image/gif", **more: object) -> dict[str, object]:
    answer = {"status": 200, "bodySize": octets, "content": {"size": octets, "mimeType": media}}
    return {"pageref": "p", "request": {"url": url}, "response": answer, **more}


def har(path: Path, entries: list[dict[str, object]]) -> Path:
    path.write_text(json.dumps({"log": {"pages": [{"id": "p", "title": "a visit"}], "entries": entries}}))
    return path


def test_a_har_file_is_a_page_that_loads(tmp_path: Path) -> None:
    entries = [
        entry("http://origin/", 3_000, "text/html"),
        entry("http://origin/a.css", 500, "text/css"),
        entry("http://origin/b.gif", 9_000, _initiator={"url": "http://origin/a.css"}),
        entry("http://origin/b.gif", 9_000),
    ]
    pages = page_sets.from_har(har(tmp_path / "visit.har", entries))
    assert [(o.path, o.size, o.after, o.changes) for o in pages.pages[0].objects] == [
        ("/", 3_000, None, True),
        ("/a.css", 500, None, False),
        ("/b.gif", 9_000, 1, True),
    ]
    pages.write(tmp_path / "visit.json")
    (tmp_path / "run.toml").write_text(NETWORK.format(file=tmp_path / "visit.json"))
    run = al.load(tmp_path / "run.toml").run(out=tmp_path / "run")
    assert (run.summary["failed"], run.summary["bytes"]) == (0, 12_500)
    objects = run.objects.sort("object")
    assert objects["url"].to_list() == [
        "http://origin/?octets=3000&visit=1",
        "http://origin/a.css?octets=500",
        "http://origin/b.gif?octets=9000&visit=1",
    ]
    # What is named by another is known when that one has arrived.
    assert objects["known_ns"][2] == objects["done_ns"][1]
    assert run.pages["load_ns"][0] == objects["done_ns"].max() - run.pages["start_ns"][0]
    # A run is repeated without the file: it keeps what was in it.
    assert '"path":"/b.gif","size":"9kB"' in json.dumps(run.manifest["scenario"], separators=(",", ":"))


def test_sizes_are_what_was_transferred_where_chromium_knows_no_bodies(tmp_path: Path) -> None:
    def answered(url: str, **sizes: int) -> dict[str, object]:
        told = entry(url, -1)
        told["response"] = {"status": 200, "bodySize": -1, "content": {"size": 50_000, "mimeType": ""}, **sizes}
        return told

    entries = [
        answered("https://origin/", headersSize=-1, _transferSize=12_000),
        answered("https://origin/a", headersSize=200, _transferSize=12_000),
        answered("https://origin/b", headersSize=200, _transferSize=100),
        answered("https://origin/c", headersSize=-1, _transferSize=-1),
        answered("https://origin/d", headersSize=-1, _transferSize=0),
        # From a cache, as Chromium says it.
        answered("https://origin/e", headersSize=-1, _transferSize=0, bodySize=0),
        answered("https://origin/f", headersSize=200, _transferSize=200, bodySize=0),
    ]
    (page,) = page_sets.from_har(har(tmp_path / "visit.har", entries)).pages
    assert [o.size for o in page.objects] == [12_000, 11_800, 0, 50_000, 50_000, 50_000, 0]


def test_what_a_script_asks_for_is_named_by_the_script(tmp_path: Path) -> None:
    def frames(*urls: str, **more: object) -> dict[str, object]:
        return {"callFrames": [{"url": url} for url in urls], **more}

    entries = [
        entry("http://origin/", 3_000, "text/html"),
        entry("http://origin/a.js", 500),
        entry("http://origin/b.js", 500),
        entry("http://origin/c", 9, _initiator={"type": "script", "stack": frames("", "http://origin/a.js")}),
        entry(
            "http://origin/d",
            9,
            _initiator={"type": "script", "stack": frames("http://x/", parent=frames("http://origin/b.js"))},
        ),
        entry("http://origin/e", 9, _initiator={"type": "script", "stack": frames()}),
    ]
    (page,) = page_sets.from_har(har(tmp_path / "visit.har", entries)).pages
    assert [o.after for o in page.objects] == [None, None, None, 1, 2, None]


def test_what_was_as_it_is_has_the_size_that_the_page_has(tmp_path: Path) -> None:
    def kept(url: str, size: int) -> dict[str, object]:
        told = entry(url, 0)
        told["response"] = {"status": 304, "bodySize": 0, "content": {"size": size}, "_transferSize": 150}
        return told

    entries = [kept("http://origin/", 50_000), entry("http://origin/a.css", 500), kept("http://origin/nothing", 0)]
    (page,) = page_sets.from_har(har(tmp_path / "visit.har", entries)).pages
    assert [(o.path, o.size) for o in page.objects] == [("/", 50_000), ("/a.css", 500)]


def test_requests_of_a_har_file_stand_in_the_order_of_their_times(tmp_path: Path) -> None:
    times = {
        "/third": "2024-05-01T10:00:00.5Z",
        "/second": "2024-05-01T12:00:00.25+02:00",
        "/": "2024-05-01T10:00:00Z",
        "/fourth": "2024-05-01T10:00:01",
    }
    entries = [entry(f"http://origin{path}", 10, startedDateTime=at) for path, at in times.items()]
    (page,) = page_sets.from_har(har(tmp_path / "visit.har", entries)).pages
    assert [o.path for o in page.objects] == ["/", "/second", "/third", "/fourth"]
    entries = [entry(f"http://origin{path}", 10, startedDateTime="whenever") for path in times]
    (page,) = page_sets.from_har(har(tmp_path / "visit.har", entries)).pages
    assert [o.path for o in page.objects] == list(times)


def test_servers_of_a_har_file_keep_a_port_that_says_something(tmp_path: Path) -> None:
    addresses = ["http://a/", "http://a:80/1", "https://a:443/2", "http://a:8080/1", "https://[fd00::1]:8443/"]
    pages = page_sets.from_har(har(tmp_path / "visit.har", [entry(address, 10) for address in addresses]))
    assert [o.server for o in pages.pages[0].objects] == ["a", "a", "a", "a:8080", "[fd00::1]:8443"]
    assert pages.servers == ["a", "fd00::1"]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def test_a_visit_of_a_real_browser_is_a_page_set(browser: Browser, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text('<link rel="stylesheet" href="a.css"><img src="b.gif"><img src="none.gif">')
    (site / "a.css").write_text("body { color: black }" + " " * 700)
    (site / "b.gif").write_bytes(b"GIF89a" + b"x" * 8_000)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        context = browser.new_context(record_har_path=tmp_path / "visit.har")
        context.new_page().goto(f"http://127.0.0.1:{server.server_port}/", wait_until="load")
        context.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    (page,) = page_sets.from_har(tmp_path / "visit.har").pages
    sizes = {o.path: o.size for o in page.objects if o.path != "/favicon.ico"}
    assert sizes == {f"/{'' if f.name == 'index.html' else f.name}": f.stat().st_size for f in site.iterdir()}
    assert page.objects[0].path == "/"


def test_the_command_line_makes_and_shows_sets(tmp_path: Path) -> None:
    made = inside("pages", "news", "--pages", "3", "--out", tmp_path / "news.json")
    assert made.code == 0, made.err
    shown = json.loads(inside("pages", "show", tmp_path / "news.json", "--json").out)
    assert [page["page"] for page in shown["pages"]] == [1, 2, 3]
    assert "www" in shown["servers"]
    again = inside("pages", "news", "--out", tmp_path / "news.json")
    assert again.code == 2
    assert "exists" in again.err
    files = inside("pages", "files", tmp_path / "news.json", "--out", tmp_path / "site")
    assert files.code == 0, files.err
    found = inside("pages", "folder", tmp_path / "site/www", "--out", tmp_path / "folder.json")
    assert found.code == 0, found.err
    bad = inside("pages", "har", tmp_path / "news.json")
    assert (bad.code, bad.out, len(bad.err.splitlines())) == (2, "", 1)


def test_a_folder_is_its_pages_and_becomes_one_again(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "i").mkdir(parents=True)
    (site / "index.html").write_text('<img src="i/a.gif"><img src="/i/a.gif"><img src="none.gif"><script src="x.js">')
    (site / "i/a.gif").write_bytes(b"x" * 6_000)
    (site / "x.js").write_bytes(b"y" * 70)
    pages = page_sets.from_folder(site)
    assert [(o.path, o.size) for o in pages.pages[0].objects[1:]] == [("/i/a.gif", 6_000), ("/x.js", 70)]
    page_sets.to_folder(pages, tmp_path / "again")
    assert (tmp_path / "again/server/i/a.gif").stat().st_size == 6_000
    assert page_sets.from_folder(tmp_path / "again/server").pages[0].objects[1:] == pages.pages[0].objects[1:]


def test_links_are_style_sheets_by_a_word_in_capitals_or_not(tmp_path: Path) -> None:
    rels = ("StyleSheet", "alternate stylesheet", "no-stylesheet", "icon")
    for number in range(len(rels)):
        (tmp_path / f"{number}.css").write_bytes(b"x")
    links = [f'<link rel="{rel}" href="{number}.css">' for number, rel in enumerate(rels)]
    (tmp_path / "index.html").write_text("".join(links))
    (page,) = page_sets.from_folder(tmp_path).pages
    assert [o.path for o in page.objects[1:]] == ["/0.css", "/1.css"]


def test_what_a_page_names_that_can_be_no_file_is_left_out(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "p?q#1%41").mkdir(parents=True)
    (site / "p?q#1%41/a.gif").write_bytes(b"x" * 60)
    names = ("http://[host]/a.png", "a%00b.png", "x" * 300, "//[", "a.gif")
    (site / "p?q#1%41/one.html").write_text("".join(f'<img src="{name}">' for name in names))
    (page,) = page_sets.from_folder(site).pages
    assert [(o.path, o.size) for o in page.objects[1:]] == [("/p%3Fq%231%2541/a.gif", 60)]


def page_set(*paths: str, server: str | None = None) -> PageSet:
    return PageSet("t", "t", (Page("p", tuple(PageObject(path, 100, server) for path in paths)),))


def test_files_have_the_names_that_a_server_looks_for(tmp_path: Path) -> None:
    pages = page_set("/", "/%C3%A9.html", "/a%2Fb%20c.gif?x=1", "/d/../e/./f", "/g/", server="www:8080")
    page_sets.to_folder(pages, tmp_path / "in" / "site")
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
    assert files == [
        f"in/site/www:8080/{name}" for name in ("a/b c.gif", "e/f", "g/index.html", "index.html", "é.html")
    ]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["site"]


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        (page_set("/", "/a", "/a/b"), "/a of server would be a file and the folder of /a/b"),
        (page_set("/", "/a/b/c", "/a"), "/a of server would be a file and the folder of /a/b/c"),
        (page_set("/", "/a?x=1", "/a?x=2"), "/a?x=1 and /a?x=2 of server would be one file"),
        (page_set("/", "/index.html"), "/ and /index.html of server would be one file"),
        (page_set("/", "/..%2f..%2fx"), "/..%2f..%2fx of server leads out of the folder"),
        (page_set("/", "/a/../../x"), "leads out of the folder"),
        (page_set("/", server=".."), "/ of .. leads out of the folder"),
        (page_set("/", server="a/../.."), "leads out of the folder"),
        (page_set("/", "/a/.."), "leads out of the folder"),
        (page_set("/", "/a%00b"), "null"),
        (page_set("/", "/" + "x" * 300), "too long"),
    ],
)
def test_files_that_cannot_be_beside_each_other_are_refused_and_nothing_is_written(
    tmp_path: Path, pages: PageSet, says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        page_sets.to_folder(pages, tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_model_have_the_sizes_of_the_model(tmp_path: Path) -> None:
    news = page_sets.news(5, 3)
    page_sets.to_folder(news, tmp_path / "site")
    for page in news.pages:
        for o in page.objects:
            assert (tmp_path / "site" / (o.server or "") / o.path[1:]).stat().st_size == o.size
    with pytest.raises(UsageError, match="is there already"):
        page_sets.to_folder(news, tmp_path / "site")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no HAR file"),
        ("[]", "no HAR file"),
        ('{"log": {}}', "no 'entries'"),
        ('{"log": {"entries": [1]}}', "no HAR file"),
        ('{"log": {"entries": [{"request": {"url": "http://a/"}, "response": {"status": 200}}]}}', "without a size"),
        ('{"log": {"entries": []}}', "there is no page"),
        ('{"log": {"entries": [{"request": {"url": "http://a/"}, "response": {"status": Infinity}}]}}', "no HAR file"),
    ],
)
def test_bad_har_files_are_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.har").write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        page_sets.from_har(tmp_path / "bad.har")
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"format": "airloom page set 1"}',
        '{"format": "airloom page set 1", "pages": [{}]}',
        '{"format": "airloom page set 1", "pages": [{"objects": [{"path": "/", "size": "1B", "after": Infinity}]}]}',
    ],
)
def test_bad_sets_are_one_line_in_python_and_in_a_scenario(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match=r"bad\.json") as error:
        page_sets.read(tmp_path / "bad.json")
    assert "\n" not in str(error.value)
    (tmp_path / "run.toml").write_text(NETWORK.format(file=tmp_path / "bad.json"))
    with pytest.raises(al.ScenarioError, match=r"bad\.json"):
        al.load(tmp_path / "run.toml")


def test_objects_must_have_sizes_and_hosts_be_there(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text('{"format": "airloom page set 1", "pages": [{"objects": [{"path": "/"}]}]}')
    (tmp_path / "run.toml").write_text(NETWORK.format(file=tmp_path / "set.json"))
    with pytest.raises(al.ScenarioError, match="has no size"):
        al.load(tmp_path / "run.toml")
    (tmp_path / "run.toml").write_text(NETWORK.format(file="news-2004"))
    with pytest.raises(al.ScenarioError, match="there is no host `"):
        al.load(tmp_path / "run.toml").run(out=tmp_path / "run")
