"""The catalogue has every name that the code gives to a number, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import airloom as al
from airloom import measures
from airloom.analysis import stop
from airloom.report import sweep
from airloom.scenario import shipped
from airloom.tables import OPTIONAL
from tools import reference

ROOT = Path(__file__).parent.parent
UMTS = ("umts-dch", "umts-hsdpa")

#: Whose numbers a function of a source file writes; a file by its path below `crates`, if need be with the function.
WRITERS = {
    "apps/src/bulk/client.rs": ["bulk"],
    "apps/src/bulk/server.rs": ["bulk-server"],
    "apps/src/ftp/client.rs": ["ftp"],
    "apps/src/ftp/server.rs": ["ftp-server"],
    "apps/src/http_client/client.rs": ["http-client"],
    "apps/src/http_server/server.rs": ["http-server"],
    "apps/src/name_server/mod.rs": ["name-server"],
    "apps/src/pages/loads.rs": ["http-client", "wap-browser"],
    "apps/src/ping/mod.rs": ["ping"],
    "apps/src/push/initiator.rs": ["push"],
    "apps/src/striped/client.rs": ["striped"],
    "apps/src/striped/server.rs": ["striped-server"],
    "apps/src/tls/layer.rs": ["tls"],
    "apps/src/wap_browser/browser.rs": ["wap-browser"],
    "apps/src/wtls/layer.rs": ["wtls"],
    "bearers/src/egprs/summary.rs": ["egprs"],
    "bearers/src/faults/mod.rs": ["faults"],
    "bearers/src/mlppp/control.rs": ["mlppp"],
    "bearers/src/piafs/bearer.rs": ["piafs"],
    "bearers/src/traffic.rs": ["egprs", "mlppp", "piafs", *UMTS],
    "bearers/src/umts/summary.rs summarise": UMTS,
    "bearers/src/umts/summary.rs write_entities": UMTS,
    "bearers/src/umts/summary.rs write_shared": ["umts-hsdpa"],
    "bearers/src/umts/summary.rs write_totals": UMTS,
    "bearers/src/vdeldrop/mod.rs": ["vdeldrop"],
    "bearers/src/wireline/direction.rs summarise": ["trace", "wireline"],
    "bearers/src/wireline/direction.rs summarise_rate": ["wireline"],
    "bearers/src/wireline/mod.rs": ["trace", "wireline"],
    "drive/src/real_time/report.rs": ["real time"],
    "proxies/src/http_cache/app.rs": ["http-cache"],
    "proxies/src/split_tcp/proxy.rs": ["split-tcp"],
    "proxies/src/wap_gateway/app.rs": ["wap-gateway"],
    "world/src/work.rs": ["work"],
}

#: Names that are put together where they are written.
PUT_TOGETHER = {
    "bearers/src/vdeldrop/mod.rs": ("vdeldrop_{}", ["met", "dropped", "delayed"]),
    "drive/src/real_time/report.rs": ("{}_us", ["p50", "p99", "max"]),
}


def functions(text: str) -> Iterator[tuple[str, str]]:
    """Name and body of each function that adds to a summary."""
    for match in re.finditer(r"\n( *)(?:pub(?:\(\w+\))? )?fn (\w+)\([^{;]*?&mut Summary\b[^{;]*\{\n", text):
        yield match[2], text[match.end() : text.index(f"\n{match[1]}}}\n", match.end())]


def literals(body: str) -> set[str]:
    found = set(re.findall(r'"(?:\{\w+\}\.|downlink\.)?([a-z][a-z0-9_.]*)"', body)) - {"downlink"}
    times = set(re.findall(r'\.summarise\("(\w+)", out\)', body))
    return (found - times) | {f"{name}_{which}_s" for name in times for which in ("mean", "min", "max")}


def written() -> dict[str, set[str]]:
    """The names that each component writes, by the sources."""
    found: dict[str, set[str]] = {}
    unknown = []
    sources = sorted((ROOT / "crates").glob("*/src/**/*.rs"))
    for path in (p for p in sources if p.name != "tests.rs"):
        text = path.read_text()
        here = str(path.relative_to(ROOT / "crates"))
        for function, body in functions(text.split("#[cfg(test)]\nmod tests {")[0]):
            names = literals(body)
            if here in PUT_TOGETHER:
                form, parts = PUT_TOGETHER[here]
                if here.startswith("drive"):
                    stems = {"lateness", "arrival_lateness"}
                    names = (names - stems) | {form.format(f"{stem}_{part}") for stem in stems for part in parts}
                else:
                    names = (names - set(parts)) | {form.format(part) for part in parts}
            components = WRITERS.get(here) or WRITERS.get(f"{here} {function}")
            if names and components is None:
                unknown.append(f"{here} {function}: {sorted(names)}")
            for component in components or ():
                found.setdefault(component, set()).update(names)
    assert not unknown, "nobody said whose these are"
    totals = re.search(r"const TOTALS: .*?= \[(.*?)\];", (ROOT / "crates/world/src/summary.rs").read_text(), re.DOTALL)
    assert totals
    found["run"] = set(re.findall(r'"(\w+)"', totals[1]))
    return found


WRITTEN = written()


@pytest.mark.parametrize("component", sorted(WRITTEN))
def test_the_catalogue_has_the_names_of_the_sources(component: str) -> None:
    catalogue = {
        name.removeprefix("DIRECTION.") for name, m in measures.measures().items() if component in m.components
    }
    assert catalogue == WRITTEN[component]


def test_every_component_of_the_catalogue_is_in_the_sources() -> None:
    assert {c for m in measures.measures().values() for c in m.components} == set(WRITTEN)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_number_and_column_of_a_run_is_described(name: str) -> None:
    scenario = al.load(name)
    run = scenario.with_keys({"run.record": ["packets", "objects", "congestion"]}).run(seed=1)
    assert [key for key in run.summary if not measures.describe(key).meaning] == []
    counts = {key: value for key, value in run.summary.items() if measures.describe(key).is_count}
    assert [key for key, value in counts.items() if value != int(value)] == []
    for table in ("flows", "pages", "states", *OPTIONAL):
        assert getattr(run, table).columns == [column.name for column in measures.columns(table)]


def test_every_column_of_a_sweep_is_described() -> None:
    axis = "links.radio.loss.downlink"
    results = al.load("umts-page").sweep({axis: [0, 0.1]}, seeds="1..2", tables=["pages", "flows", "states"]).run()
    head = ["point", axis, "seed", "run_id"]
    assert results.all_runs.columns == [*head, "status", "error", *results.measures]
    assert set(head) - {axis} | {"status", "error"} == {column.name for column in measures.columns("runs")}
    assert [key for key in results.measures if not measures.describe(key).meaning] == []
    for table in ("pages", "flows", "states", "rate"):
        assert results.table(table).columns == [*head, *(column.name for column in measures.columns(table))]


def test_every_column_of_a_capture_and_of_energy_is_described() -> None:
    from airloom import analysis

    run = al.load("umts-page").with_keys({"links.radio.rrc": {}}).run(seed=1)
    assert run.capture is not None
    assert al.analyze(run.capture).trace.columns == [column.name for column in measures.columns("trace")]
    assert analysis.energy(run).columns == [column.name for column in measures.columns("energy")]


def test_what_the_catalogue_does_not_have_is_named_by_its_ending() -> None:
    found = measures.describe("mobile.of_another_version_ms")
    assert (found.name, found.meaning, found.unit, found.is_count) == ("of_another_version_ms", "", "ms", False)


def test_the_page_of_results_is_up_to_date() -> None:
    for path, text in reference.pages().items():
        assert path.read_text() == text, f"{path.name} is out of date: `make docs` writes it"


def test_usual_measures_are_measures() -> None:
    assert {*stop.USUAL, *sweep._FIRST} <= set(measures.measures())
