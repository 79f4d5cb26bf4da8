"""Makes the site, `make site`: all documents, and the references that come from the code, as pages without a network.

The pages are those of the repository under their own paths, so that links between them hold as they are; notebooks
become pages, and the references of the command line and of the Python package are added. The generator is zensical. At
the end every link of every page is followed, and one that leads nowhere is an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools.site.links import broken_links
from tools.site.navigation import navigation, toml
from tools.site.pages import MADE, ROOT, generated, notebook

HERE = Path(__file__).resolve().parent
SITE = ROOT / "target" / "site"
SOURCE = SITE / "source"
HTML = SITE / "html"
#: What `cargo doc` has made.
RUST = ROOT / "target" / "doc"

#: What of the repository is in the site, by pattern.
PARTS = (
    "*.md",
    "LICENSE-*",
    "docs/**/*",
    "conformance/*.md",
    "integrations/**/*",
    "python/airloom/studies/*/README.md",
    "python/airloom/studies/*/shipped/*.png",
)


def gather() -> None:
    """Copies the pages, makes those that are generated, and puts the configuration beside them."""
    shutil.rmtree(SITE, ignore_errors=True)
    for pattern in PARTS:
        for path in ROOT.glob(pattern):
            if path.is_file():
                there = SOURCE / path.relative_to(ROOT)
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, there)
    notebooks = [path.relative_to(SOURCE) for path in SOURCE.glob("docs/**/*.ipynb")]
    for path in notebooks:
        (SOURCE / path.with_suffix(".md")).write_text(notebook(SOURCE / path), encoding="utf-8")
    for page in SOURCE.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for path in notebooks:
            text = text.replace(f"{path.name})", f"{path.with_suffix('.md').name})")
        page.write_text(text, encoding="utf-8")
    for name, text in generated(RUST).items():
        there = SOURCE / "reference" / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text, encoding="utf-8")
    for name in ("site.css", "iframe-worker.js"):
        shutil.copyfile(HERE / name, SOURCE / name)
    shown = navigation((ROOT / "docs" / "README.md").read_text(encoding="utf-8"), MADE)
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8").replace("nav = []", f"nav = {toml(shown)}")
    (SITE / "zensical.toml").write_text(settings, encoding="utf-8")


def main() -> int:
    """Makes it; 1 if a link leads nowhere."""
    began = time.monotonic()
    gather()
    zensical = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    if subprocess.run(zensical, cwd=SITE).returncode:
        return 1
    (HTML / "404.html").unlink()  # for servers
    shutil.copytree(RUST, HTML / "rust")
    if broken := broken_links(HTML, HTML / "rust"):
        print(*broken[:50], f"{len(broken)} links lead nowhere", sep="\n", file=sys.stderr)
        return 1
    octets = sum(path.stat().st_size for path in HTML.rglob("*") if path.is_file())
    count = sum(1 for _ in HTML.rglob("*.html"))
    spent = time.monotonic() - began
    print(f"{count} pages, {octets / 1e6:.0f} MB, {spent:.0f} s   next: open {(HTML / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
