"""Pages out of a folder of files, and folders of a page set's files for real servers."""

from __future__ import annotations

import posixpath
import shutil
import tempfile
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

from airloom.errors import UsageError
from airloom.page_sets.page_set import Page, PageObject, PageSet, checked

#: Files of this size or more are taken for large images.
LARGE = 5_000

#: Largest page that is parsed.
_MOST_PARSED = 8_000_000

#: Octets that files are filled with, `to_folder`.
_LINE = b"airloom lays here what a page of this size would have.\n"


def from_folder(folder: Path | str) -> PageSet:
    """A page of each `.html` file in a folder and below, with the files there that it names (`src`, style sheets).

    What is elsewhere, or not there, is left out. Raises `UsageError`, one line.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise UsageError(f"{folder}: this is no folder")
    try:
        found = sorted(p for ending in ("*.html", "*.htm") for p in root.rglob(ending) if p.is_file())
        pages = tuple(_page(root, file) for file in found)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    if not pages:
        raise UsageError(f"{folder}: there is no .html file in it")
    return checked(PageSet(f"Folder {root.name}", f"folder {root.name}", pages), folder)


class _Named(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "link":
            fetched = said.get("href") if "stylesheet" in (said.get("rel") or "").lower().split() else None
        else:
            fetched = said.get("src") or said.get("background")
        if fetched:
            self.addresses.append(fetched)


def _page(root: Path, file: Path) -> Page:
    size = file.stat().st_size
    if size > _MOST_PARSED:
        raise UsageError(f"{file}: {size} octets; pages of at most {_MOST_PARSED} are read")
    parser = _Named()
    parser.feed(file.read_text(encoding="utf-8", errors="replace"))
    own = "/" + file.relative_to(root).as_posix()
    objects = [PageObject(quote(own), size, changes=True)]
    seen = {own}
    for address in parser.addresses:
        # What is no address, or cannot be the name of a file (a zero in it, too long), is not there.
        with suppress(ValueError, OSError):
            there = urlsplit(urljoin(quote(own), address))
            place = unquote(there.path)
            inside = (root / place.lstrip("/")).resolve()
            if there.scheme or there.netloc or place in seen or not inside.is_relative_to(root) or not inside.is_file():
                continue
            size = inside.stat().st_size
            seen.add(place)
            objects.append(PageObject(quote(place), size, changes=size >= LARGE))
    return Page(own, tuple(objects))


def to_folder(pages: PageSet, folder: Path | str) -> None:
    """Writes a folder for each server of a set, with files of the right size for nginx: pages name their objects.

    A page is as large as the set says, or a little larger if its objects' names do not fit. Raises `UsageError` if
    the folder is there, or if objects cannot be files beside each other; then nothing is written.
    """
    root = Path(folder)
    if root.exists():
        raise UsageError(f"{folder} is there already")
    wanted = _files(pages)
    root.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{root.name}.", suffix=".part", dir=root.parent))
    made = beside / "made"
    try:
        made.mkdir()
        for page in pages.pages:
            first = page.objects[0]
            named = "".join(f'<img src="{_address(o, first)}">\n' for o in page.objects[1:])
            text = f"<!doctype html>\n<title>{page.name}</title>\n{named}".encode()
            for o in page.objects:
                content = text + b"<!--" + _fill(o.size - len(text) - 7) + b"-->" if o is first else _fill(o.size)
                file = made.joinpath(*wanted[o.key])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        made.rename(root)
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder}: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _files(pages: PageSet) -> dict[tuple[str | None, str], tuple[str, ...]]:
    """The file of each object, by its key, as the names of its folders and its own."""
    found: dict[tuple[str | None, str], tuple[str, ...]] = {}
    taken: dict[tuple[str, ...], str] = {}
    for o in (o for page in pages.pages for o in page.objects):
        if o.key in found:
            continue
        server = o.server or "server"
        # As a server takes it: %2F is a slash, and where a path ends with one the index stands for it.
        path = unquote(o.path.partition("?")[0]).lstrip("/")
        names = (server, *posixpath.normpath(path + "index.html" if path[-1:] in ("", "/") else path).split("/"))
        if server in (".", "..") or "/" in server or names[1] in (".", ".."):
            raise UsageError(f"{o.path} of {server} leads out of the folder")
        if (other := taken.setdefault(names, o.path)) != o.path:
            raise UsageError(f"{other} and {o.path} of {names[0]} would be one file")
        found[o.key] = names
    for names, path in taken.items():
        for depth in range(1, len(names)):
            if (file := taken.get(names[:depth])) is not None:
                raise UsageError(f"{file} of {names[0]} would be a file and the folder of {path}")
    return found


def _address(o: PageObject, first: PageObject) -> str:
    return o.path if o.server == first.server else f"http://{o.server}{o.path}"


def _fill(octets: int) -> bytes:
    wanted = max(0, octets)
    return (_LINE * (wanted // len(_LINE) + 1))[:wanted]
