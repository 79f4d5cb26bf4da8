"""The pages of the site that are made, and the links that are followed; `make site` has a generator to install."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.cli import app
from tools.site import make, navigation, pages
from tools.site.links import broken_links

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_every_command_and_every_option_is_on_the_page_of_commands() -> None:
    import typer.main

    page = pages.commands()
    command = typer.main.get_command(app)
    commands = command.commands  # type: ignore[attr-defined]
    assert {"run", "study"} <= commands.keys()
    for name, verb in commands.items():
        assert f"\n## airloom {name}\n" in page
        part = page.split(f"\n## airloom {name}\n")[1].split("\n## ")[0]
        for parameter in verb.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(option in part for option in parameter.opts), f"{name} {parameter.opts}"


def test_everything_that_a_part_of_the_package_exports_is_on_its_page() -> None:
    import airloom

    page = pages.python("airloom")
    missing = [name for name in airloom.__all__ if f"::: airloom.{name}\n" not in page]
    assert missing == ["__version__"]
    assert "```pycon\n>>> import airloom as al" in page


def test_a_notebook_becomes_a_page_with_its_pictures(tmp_path: Path) -> None:
    source = pages.ROOT / "docs" / "tutorial" / "first-study.ipynb"
    copy = tmp_path / source.name
    copy.write_bytes(source.read_bytes())
    page = pages.notebook(copy)
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) > 2
    assert all(f"]({picture.name})" in page for picture in pictures)


def test_links_that_lead_nowhere_and_what_is_fetched_from_elsewhere_are_found(tmp_path: Path) -> None:
    rust = tmp_path / "rust"
    rust.mkdir()
    (rust / "a.html").write_text('<a href="missing.html">')
    (tmp_path / "b.html").write_text('<h1 id="top"></h1><a href="c.html"></a><a href="https://example.org/"></a>')
    wrong = '<a href="no.html"><a href="b.html#no"><a href="b.html#top"><img src="no.png"><a href="rust/a.html#x">'
    (tmp_path / "c.html").write_text(f'{wrong}<script src="https://example.org/x.js">')
    assert broken_links(tmp_path, rust) == [
        "c.html: b.html#no: no such place",
        "c.html: fetches https://example.org/x.js",
        "c.html: no.html",
        "c.html: no.png",
    ]


def test_files_that_documents_link_to_are_in_the_site() -> None:
    there = {path for pattern in make.PARTS for path in pages.ROOT.glob(pattern)}
    there |= {folder for path in there for folder in path.parents}
    for page in (path for path in there if path.suffix == ".md"):
        # Lines of code have brackets of their own.
        text = re.sub(r"(?m)^    .*$", "", page.read_text())
        targets = {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)}
        assert sorted(map(str, targets - there)) == [], page.name


def test_every_document_is_in_the_navigation() -> None:
    text = (pages.ROOT / "docs" / "README.md").read_text()
    shown = list(navigation.pages(navigation.navigation(text, pages.MADE)))
    assert len(shown) == len(set(shown))
    documents = {str(path.relative_to(pages.ROOT)) for path in (pages.ROOT / "docs").rglob("*.md")}
    assert sorted(documents - set(shown)) == [], "docs/README.md lists all documents"


def test_the_search_of_a_page_from_disk_has_a_worker_that_answers(browser: Browser, tmp_path: Path) -> None:
    shim = (pages.ROOT / "tools" / "site" / "iframe-worker.js").read_text()
    (tmp_path / "iframe-worker.js").write_text(shim)
    (tmp_path / "worker.js").write_text("self.onmessage = event => self.postMessage({ heard: event.data.words })")
    (tmp_path / "page.html").write_text(
        """<script src="iframe-worker.js"></script><script>
        window.answers = []
        const worker = new Worker("worker.js")
        worker.onmessage = event => window.answers.push(event.data.heard)
        worker.postMessage({ words: ["before it is there"] })
        setTimeout(() => worker.postMessage({ words: ["after"] }), 200)
        </script>"""
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("window.answers.length == 2")
    assert page.evaluate("window.answers") == [["before it is there"], ["after"]]
    page.close()
