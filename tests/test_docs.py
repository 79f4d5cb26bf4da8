"""The examples of the documents work."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import airloom as al
from airloom.scenario import parse
from tests import documents
from tests.conftest import needs
from tests.documents import PAGES, ROOT


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
REAL = ("emulate", "lab(", "link(", "(airloom)", "pytest.mark")
SCRIPTS = [(name, block) for name, block in blocks("python") if not any(word in block for word in REAL)]


@pytest.mark.parametrize("block", [b for _, b in SCRIPTS], ids=[n for n, _ in SCRIPTS])
def test_scripts_in_documents_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    al.load("umts-page").run(out="page")
    exec(compile(block, "document", "exec"), {})
    assert capsys.readouterr().out


def places(page: Path) -> set[str]:
    """What links can name in a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        # Lines of code have brackets of their own.
        text = re.sub(r"(?m)^    .*$", "", page.read_text())
        links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text) + re.findall(r'src="([^":]+)()"', text)
        for target, place in links:
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not place or place in places(there), f"{page.name}: {target}#{place}"


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_commands_in_documents_run(page: Path, tmp_path: Path) -> None:
    for block in documents.blocks(page):
        if block.runs_with_its_page:
            for program in block.says("needs"):
                needs(program)
            documents.run(block, tmp_path)


SLOW = [block for block in documents.ALL if block.says("slow") and not block.says("laboratory")]


@pytest.mark.slow
@pytest.mark.parametrize("block", SLOW, ids=[block.name for block in SLOW])
def test_long_commands_in_documents_run(block: documents.Block, tmp_path: Path) -> None:
    documents.run(block, tmp_path, timeout=1800)


def test_commands_are_seen_by_either_name_of_their_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\none\n```\n\n<!-- not run: why -->\n\n```console\ntwo\n```\n\n```\nthree\n```\n")
    seen = [(block.line, block.commands, block.says("not run")) for block in documents.blocks(page)]
    assert seen == [(2, "one", []), (8, "two", ["why"])]


def test_what_fails_in_a_block_fails(tmp_path: Path) -> None:
    block = documents.Block(documents.PAGES[0], 1, "airloom run no-such-scenario\necho on", [])
    with pytest.raises(AssertionError, match="no-such-scenario"):
        documents.run(block, tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        documents.run(block._replace(commands="exec sleep 60"), tmp_path, timeout=1)


def test_what_a_document_says_that_a_block_prints_is_what_it_prints(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "    airloom list bearers\n\nSaid of it:\n\n<!-- printed -->\n\n    one   1.5\n    ...\n\n    two\n"
    )
    (block,) = documents.blocks(page)
    assert block.printed == ("    one   1.5", "    ...")
    block = block._replace(page=documents.PAGES[0], commands="echo zero; echo 'one 1.5'")
    documents.run(block, tmp_path)
    with pytest.raises(AssertionError, match=r"does not print\n +one +1\.5\n"):
        documents.run(block._replace(commands="echo one 1.6"), tmp_path)


def test_what_is_said_of_commands_in_documents_is_known() -> None:
    known = {"not run", "before", "needs", "laboratory", "slow"}
    assert {mark for block in documents.ALL for mark, _ in block.marks} <= known
    assert all(reason != "yes" for block in documents.ALL for reason in block.says("not run"))


def test_commands_in_documents_exist() -> None:
    from airloom.cli.verbs import VERBS

    named = {
        verb
        for page in PAGES
        for verb in re.findall(r"^ {4}(?:sudo \S*/)?airloom (\w+)", page.read_text(), re.MULTILINE)
    }
    assert named
    assert named <= VERBS.keys()


def test_tools_with_arguments_in_documents_and_messages_can_be_called_so() -> None:
    call = re.compile(r"(?:(\S*python) )?\b((?:tools|conformance|integrations)/[\w./-]*\w)(?= --| \[?[A-Z]{3,}| \{)")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    calls = [
        (file, python, program)
        for file in (*pages, *(ROOT / "tools").rglob("*.py"), *(ROOT / "python" / "airloom").rglob("*.py"))
        for python, program in call.findall(file.read_text(encoding="utf-8"))
    ]
    assert len(calls) > 5
    for file, python, program in calls:
        assert (ROOT / program).is_file(), f"{file}: {program}"
        assert python or os.access(ROOT / program, os.X_OK), f"{file}: {program} is no program without Python"
