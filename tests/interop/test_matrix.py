"""A new matrix beside the one that ships."""

import re
import runpy
from pathlib import Path

import pytest

from tests.documents import ROOT


def test_what_passes_no_more_is_said_and_what_never_passed_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "conformance" / "interop"))["main"]
    client, server = (ROOT / "conformance" / "interop.md").read_text().split("## With our server")
    places = [tmp_path / "client", tmp_path / "server"]
    for place, text in zip(places, (client, server), strict=True):
        place.mkdir()
        (place / "matrix.md").write_text(text)
    folders = [*map(str, places), str(tmp_path / "not-there")]
    assert main(folders) == 0
    # A reader that fails makes a dash of a mark; notes have numbers.
    (places[1] / "matrix.md").write_text(re.sub(r"(`retry` \| )✅", r"\1– 5", server))
    assert main(folders) == 1
    assert capsys.readouterr().err == "interop: quic-go → airloom: `retry` passes in interop.md, and not here\n"
    assert main(folders[:1]) == 1
    assert "aioquic → airloom: `handshake`" in capsys.readouterr().err
