"""The examples of the documents work."""

import re
from pathlib import Path

import pytest

import airloom as al
from airloom.scenario import parse

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.stem}-{number}", block)
        for page in PAGES
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL))
    ]


WHOLE = [(name, block) for name, block in blocks("toml") if "[hosts]" in block and "[links]" in block]


@pytest.mark.parametrize("block", [b for _, b in WHOLE], ids=[n for n, _ in WHOLE])
def test_scenarios_in_documents_run(block: str) -> None:
    scenario = parse(block)
    packets = scenario.run().summary["packets"]
    # Real programs do nothing in virtual time.
    applications = any(host.get("app") for host in scenario.understood["hosts"].values())
    assert packets > 0 if applications else packets == 0


# What needs root is tested with the emulation.
SCRIPTS = [(name, block) for name, block in blocks("python") if "emulate" not in block and "lab(" not in block]


@pytest.mark.parametrize("block", [b for _, b in SCRIPTS], ids=[n for n, _ in SCRIPTS])
def test_scripts_in_documents_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    al.load("umts-page").run(out="page")
    exec(compile(block, "document", "exec"), {})
    assert capsys.readouterr().out


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        # Lines of code have brackets of their own.
        text = re.sub(r"(?m)^    .*$", "", page.read_text())
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_in_documents_exist() -> None:
    from airloom.cli.verbs import VERBS

    named = {
        verb
        for page in PAGES
        for verb in re.findall(r"^ {4}(?:sudo \S*/)?airloom (\w+)", page.read_text(), re.MULTILINE)
    }
    assert named
    assert named <= VERBS.keys()
