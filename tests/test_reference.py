import pytest

from airloom import reference


@pytest.mark.parametrize(
    "kind", [k for k in reference.KINDS if k not in ("presets", "scenarios", "studies", "measures")]
)
def test_every_entry_and_every_key_is_explained(kind: str) -> None:
    for name, summary in reference.summaries(kind).items():
        assert summary.endswith((".", "`", ")")), f"{kind} {name}: {summary!r}"
        for key in reference.keys(kind, name):
            assert key.meaning, f"{kind} {name} {key.name}"
            assert key.type, f"{kind} {name} {key.name}"
