"""The package for Playwright's own tests: its browser is born behind the link."""

import json
import os
import subprocess
import sys
from pathlib import Path

import playwright
import pytest

from tests.conftest import needs, needs_laboratory
from tests.documents import ROOT

pytestmark = pytest.mark.emulate

#: Playwright's package for Python brings node, and the library that its package for node has.
DRIVER = Path(playwright.__file__).parent / "driver"

SCRIPT = """\
const airloom = require(process.argv[2]);
const { chromium } = require(process.argv[3]);
(async () => {
  const use = airloom('wireline', JSON.parse(process.argv[4]));
  const browser = await chromium.launch(use.launchOptions);
  const page = await browser.newPage();
  const start = Date.now();
  await page.goto(process.argv[5]);
  console.log(JSON.stringify({ ms: Date.now() - start, text: await page.textContent('body') }));
  await browser.close();
})();
"""


def load(url: str, **options: object) -> dict[str, object]:
    needs_laboratory()
    options = {"command": [sys.executable, "-m", "airloom"], "browser": needs("chromium"), "out": "results", **options}
    package = ROOT / "integrations" / "node" / "airloom.js"
    done = subprocess.run(
        [DRIVER / "node", "-e", SCRIPT, "x", package, DRIVER / "package", json.dumps(options), url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "NODE_PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_page_of_this_machine_comes_over_the_link_and_results_are_kept(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<body>from this machine</body>")
    script = (
        "import http.server, sys, functools\n"
        "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, site], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        port = int(server.stdout.readline())
        try:
            found = load(f"http://localhost:{port}/", loopback=[port], seed=7, set={"delay": "150ms"})
        finally:
            server.kill()
    assert found["text"] == "from this machine"
    assert int(str(found["ms"])) >= 600
    (folder,) = Path("results").iterdir()
    said = json.loads((folder / "run.json").read_text())
    assert (said["seed"], said["exit_code"]) == (7, 0)
