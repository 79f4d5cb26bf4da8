"""The package for Playwright's own tests: its browser is born behind the link."""

import json
import os
import subprocess
import sys
from pathlib import Path

import playwright
import pytest

from airloom import freezes
from tests.conftest import needs, needs_laboratory
from tests.documents import ROOT
from tests.emulate.video import RECORD

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


#: A video that a browser draws, over a link that carries it and over one that takes too long.
VIDEO = """\
const airloom = require(process.argv[2]);
const { chromium } = require(process.argv[3]);
const record = {record};
(async () => {
  let video = Buffer.alloc(0);
  const server = require('node:http').createServer((request, response) => {
    if (request.url === '/') {
      response.writeHead(200, { 'Content-Type': 'text/html' });
      return response.end('<video muted onloadeddata=this.play() src=/video></video>');
    }
    response.writeHead(200, { 'Content-Type': 'video/webm', 'Content-Length': video.length });
    response.end(video);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const port = server.address().port;
  const browse = async (set, what) => {
    const use = airloom('wireline', { ...JSON.parse(process.argv[4]), loopback: [port], set });
    const browser = await chromium.launch(use.launchOptions);
    const context = await browser.newContext();
    const counted = await airloom.freezes(context);
    const page = await context.newPage();
    await page.goto(process.argv[5].replace('PORT', port));
    const made = await what(page);
    const summary = await counted.summary();
    await browser.close();
    return { made, summary };
  };
  const over = "document.querySelector('video').ended || document.querySelector('video').currentTime > 2.5";
  const seen = (page) => page.waitForFunction(over).then(() => {});
  video = Buffer.from((await browse({}, (page) => page.evaluate(record))).made);
  const smooth = await browse({}, seen);
  // Three sixteenths of what it takes: how much is there when it begins to play is not always the same.
  const slow = await browse({ rate: `${Math.round(video.length / 2)}bit/s` }, seen);
  server.close();
  console.log(JSON.stringify({ smooth: smooth.summary, slow: slow.summary }));
})();
"""


def load(url: str, script: str = SCRIPT, **options: object) -> dict[str, object]:
    needs_laboratory()
    options = {"command": [sys.executable, "-m", "airloom"], "browser": needs("chromium"), "out": "results", **options}
    package = ROOT / "integrations" / "node" / "airloom.js"
    done = subprocess.run(
        [DRIVER / "node", "-e", script, "x", package, DRIVER / "package", json.dumps(options), url],
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


def test_freezes_of_videos_are_counted_as_they_are_by_the_plugin_for_pytest() -> None:
    package = (ROOT / "integrations" / "node" / "airloom.js").read_text()
    in_both = package.partition("const WATCH = `")[2].partition("`")[0]
    assert in_both.replace("BINDING", freezes._BINDING).replace("LASTING", freezes._LASTING) == freezes._WATCH
    found = load("http://localhost:PORT/", VIDEO.replace("{record}", RECORD))
    smooth, slow = found["smooth"], found["slow"]
    assert isinstance(smooth, dict)
    assert isinstance(slow, dict)
    # A busy machine may stop for a moment by itself.
    assert slow["freezes"] >= 1, found
    assert slow["freeze_s"] > smooth["freeze_s"] + 0.5, found
