"""The commands of the documents that make laboratories."""

from pathlib import Path

import pytest

from tests import documents
from tests.conftest import needs, needs_laboratory

pytestmark = pytest.mark.emulate

BLOCKS = [block for block in documents.ALL if block.says("laboratory")]


@pytest.mark.parametrize(
    "block",
    [pytest.param(b, id=b.name, marks=[pytest.mark.slow] if b.says("slow") else []) for b in BLOCKS],
)
def test_commands_in_documents_run(block: documents.Block, tmp_path: Path) -> None:
    for program in block.says("needs"):
        needs(program)
    needs_laboratory()
    documents.run(block, tmp_path, timeout=1800)
