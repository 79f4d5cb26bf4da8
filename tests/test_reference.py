import re

import pytest

import airloom as al
from airloom import reference
from tests.documents import ROOT


@pytest.mark.parametrize(
    "kind", [k for k in reference.KINDS if k not in ("presets", "scenarios", "studies", "measures")]
)
def test_every_entry_and_every_key_is_explained(kind: str) -> None:
    for name, summary in reference.summaries(kind).items():
        assert summary.endswith((".", "`", ")")), f"{kind} {name}: {summary!r}"
        for key in reference.keys(kind, name):
            assert key.meaning, f"{kind} {name} {key.name}"
            assert key.type, f"{kind} {name} {key.name}"


def test_addresses_that_are_not_written_are_those_of_the_networks() -> None:
    networks = {"links.radio.subnet": "10.5.0.0/16", "links.radio.subnet6": "fd12::/32", "run.points": ["*.ip"]}
    understood = al.load("umts-page", networks | {"hosts.mobile.count": 15}).understood
    written = list(reference.interfaces(understood))
    for link in understood["links"].values():
        del link["addresses"]
    assert list(reference.interfaces(understood)) == written

    many = al.load("umts-page", networks | {"hosts.mobile.count": 1000}).understood
    assert "addresses" not in many["links"]["radio"]
    assert reference.addresses(many, "mobile")[999] == "10.5.3.233"
    assert reference.addresses(many, "mobile[999]") == reference.addresses_of_all(many)["mobile[999]"] == ["10.5.3.233"]
    assert reference.addresses(many, "gateway")[0] == "10.5.0.1"


def test_tests_that_cover_a_standard_are_in_modules_that_exist() -> None:
    modules = set()
    for file in (ROOT / "crates").glob("*/src/**/*.rs"):
        if re.search(r"\bmod tests\b", file.read_text(encoding="utf-8")):
            crate, _, *parts = file.with_suffix("").relative_to(ROOT / "crates").parts
            modules.add("::".join(["", crate, *(part for part in parts if part not in ("lib", "mod")), "tests"]))
    pages = sorted((ROOT / "conformance").glob("*.toml"))
    named = [name for page in pages for name in re.findall(r"[\w:]+::tests\b", page.read_text(encoding="utf-8"))]
    assert len(named) > 100
    assert [name for name in named if not any(module.endswith(f"::{name}") for module in modules)] == []


def test_the_comparison_of_tcp_names_settings_and_profiles_of_today() -> None:
    page = (ROOT / "docs" / "reference" / "tcp-comparison.md").read_text(encoding="utf-8")
    (without,) = re.findall(r"^No effect on these links .*$", page, re.MULTILINE)
    named = set(re.findall(r"^\| `([\w.]+)`: ", page, re.MULTILINE)) | set(re.findall(r"`([\w.]+)`", without))
    assert len(named) > 30
    keys = {key.name for key in reference.keys("transports", "tcp")}
    assert {name for name in named if name.partition(".")[0] not in keys} == set()
