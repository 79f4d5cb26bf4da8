"""What `make test` counts."""

import re

from tests.documents import ROOT
from tools import run_tests


def test_skips_of_rust_tests_are_counted() -> None:
    says = re.compile(r"(?<!fn )\b(?:skip\(|are_installed\(\s*&\[[^]]*\],)\s*(?:&format!\(\s*)?\"([^\"]*)\"")
    names = []
    for file in sorted((ROOT / "crates").rglob("*.rs")):
        text = file.read_text(encoding="utf-8")
        if file != ROOT / "crates/testkit/src/skip.rs":
            assert "SKIPPED" not in text, f"{file}: it says so itself"
            assert '"AIRLOOM_CI"' not in text, f"{file}: it decides itself"
        names += says.findall(text)
    assert len(names) > 8, names
    for name in names:
        assert run_tests.SKIPPED.findall(f"test it ... SKIPPED {name}: why\n") == [f"{name}: why"]
        crate = name.partition("/")[0]
        assert (ROOT / "crates" / crate).is_dir(), name
