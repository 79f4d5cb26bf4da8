"""What others wrote goes to a terminal cleaned, whichever command prints it."""

import re
from pathlib import Path

import pytest

import airloom
from airloom.cli import terminal

CLI = Path(airloom.__file__).parent / "cli"


@pytest.mark.parametrize("text", ["plain", "Grüße, 日本, ☃", "two\nlines", "a tab\tless", ""])
def test_what_can_be_read_stays(text: str) -> None:
    assert terminal.cleaned(text) == text.replace("\t", " ")


def test_what_a_terminal_would_obey_is_replaced() -> None:
    hostile = [
        *map(chr, [*range(10), *range(11, 32), *range(0x7F, 0xA0)]),
        *"\u061c\u200b\u200f\u202a\u202e\u2066\u2069\ufeff",
    ]
    for character in hostile:
        assert terminal.cleaned(character) in ("\ufffd", " "), hex(ord(character))


def test_tables_messages_and_errors_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table(["a\x9b"], [["b\x1b[2J"]])
    terminal.say("c\u202e")
    terminal.say_error("d\x07")
    terminal.emit("e\x1b")
    out, err = capsys.readouterr()
    assert not set(out + err) & set("\x9b\x1b\u202e\x07")


def test_commands_print_by_these_functions_alone() -> None:
    bare = re.compile(r"(?<![\w.])print\(|sys\.std(out|err)\.write\(")
    found = {
        f"{file.relative_to(CLI)}: {line.strip()}"
        for file in CLI.rglob("*.py")
        if file.name != "terminal.py"
        for line in file.read_text(encoding="utf-8").splitlines()
        if bare.search(line)
    }
    # The title of a terminal's window: our own numbers, between sequences that set it.
    assert found == {"meter.py: sys.stderr.write(text)"}
