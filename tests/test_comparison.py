"""What differs between results."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom.comparison.result import settings
from airloom.errors import UsageError
from tests.cli.shell import inside
from tests.report.browser import Open

LOSS = "links.radio.loss.downlink"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comparison")
    page = al.load("umts-page", {"run.record": ["packets", "pcapng"]})
    page.run(seed=1, out=folder / "a")
    page.run(seed=1, out=folder / "same")
    page.with_keys({LOSS: 0.2}).run(seed=1, out=folder / "b")
    al.load("umts-page").sweep({LOSS: [0, 0.1]}, seeds="1..6").run(out=folder / "s", workers=1)
    slow = al.load("umts-page", {"links.internet.delay": "60ms"})
    slow.sweep({LOSS: [0, 0.1]}, seeds="1..6").run(out=folder / "t", workers=1)
    slow.sweep({LOSS: [0.1]}, seeds="11..16").run(out=folder / "u", workers=1)
    return folder


def test_the_same_run_is_equal_in_every_way(place: Path) -> None:
    found = al.compare(place / "a", place / "same")
    assert found.is_equal
    assert (found.first, found.settings) == (None, {})
    done = inside("compare", place / "a", place / "same", "--exit-code")
    assert (done.code, done.out.splitlines()[-1]) == (0, "nothing differs")


def test_runs_differ_in_settings_numbers_and_from_a_packet_on(place: Path) -> None:
    a, b = al.Run(place / "a"), al.Run(place / "b")
    found = al.compare(a.folder, b.folder)
    assert found.settings == {f"{LOSS}.loss": [0.05, 0.2]}
    row = found.table.filter(measure="page_load_s").row(0, named=True)
    assert (row["first"], row["value"]) == (a.summary["page_load_s"], b.summary["page_load_s"])
    assert row["difference"] == b.summary["page_load_s"] - a.summary["page_load_s"]
    first = found.first
    assert first is not None
    # Nothing differs before it, in any column at any point.
    before = pl.col("t_ns") < first.t_s * 1e9 - 1
    assert a.packets.filter(before).equals(b.packets.filter(before))
    done = inside("compare", a.folder, b.folder)
    assert done.code == 0
    assert "parts from A at" in done.out
    assert "radio.downlink." not in done.out
    assert inside("compare", a.folder, b.folder, "--exit-code").code == 1
    document = json.loads(inside("compare", a.folder, b.folder, "--json").out)
    assert (document["kind"], document["equal"]) == ("runs", False)
    assert document["first_differences"][0]["says"] in done.out


def test_sweeps_are_compared_by_pairs_of_a_seed(place: Path) -> None:
    found = al.compare(place / "s", place / "t")
    s, t = al.SweepResults(place / "s"), al.SweepResults(place / "t")
    for row in found.table.filter(measure="page_load_s").iter_rows(named=True):
        one, other = (of.runs.filter(pl.col(LOSS) == row[LOSS]).sort("seed")["page_load_s"] for of in (s, t))
        assert row["difference"] == pytest.approx((other - one).median())
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["seeds"] == 6
    assert found.settings["links.internet.delay.downlink"] == ["20ms", "60ms"]
    # Other seeds: no pairs, and one point alone.
    apart = al.compare(place / "s", place / "u")
    row = apart.table.filter(measure="page_load_s").row(0, named=True)
    assert row["difference"] == pytest.approx(row["value"] - row["first"])
    assert "points are in A alone" in apart.notes[0]
    with pytest.raises(UsageError, match="measures 'page_lod'"):
        al.compare(place / "s", place / "t", measures=["page_lod"])


def test_captures_are_compared_connection_by_connection_and_together(place: Path, tmp_path: Path) -> None:
    found = al.compare(place / "a" / "trace.pcapng", place / "b" / "trace.pcapng")
    row = found.table.filter(measure="duration_s").row(0, named=True)
    assert row["value"] > row["first"]
    assert al.compare(place / "a" / "trace.pcapng", place / "same" / "trace.pcapng").is_equal
    # Two connections at each side of a proxy, against one.
    captures = []
    for count in (2, 1):
        page = al.load("split-page", {"hosts.mobile.app.http-client.connections": count})
        captures.append(page.run(seed=1, out=tmp_path / f"of-{count}").capture)
    (more, fewer) = (capture for capture in captures if capture is not None)
    found = al.compare(more, fewer)
    octets = found.table.filter(measure="unique_octets")
    together = octets.filter(pl.col("connection").str.starts_with("all connections at "))
    singly = octets.filter(pl.col("connection").str.starts_with("connection "))
    assert (together.height, singly.height) == (2, 4)
    for column, capture in (("first", more), ("value", fewer)):
        sent = [max(side["unique_octets"] for side in each["sides"]) for each in al.analyze(capture).connections]
        assert sorted(singly[column].drop_nulls()) == sorted(sent)
        assert together[column].sum() == sum(sent)
    assert found.table.filter(measure="connections")["difference"].to_list() == [-1, -1]
    assert found.notes == ["2 connections are in A alone"]
    said = inside("compare", more, fewer).out
    assert re.search(r"^all connections at gateway.radio.ip\n.*\nconnections +count +2 +1 +-1 ", said, re.MULTILINE), (
        said
    )
    names = [line for line in said.splitlines() if line.startswith("connection ")]
    assert len(names) == 4
    alone = al.compare(fewer, more).table.filter(pl.col("connection").str.contains(" of B, ", literal=True))
    assert alone["connection"].n_unique() == 2
    assert alone["first"].is_null().all()


def test_of_long_captures_the_first_segments_are_held_against_each_other(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airloom.comparison import captures

    # The second connection alone carries much.
    pages = {"hosts.mobile.app.http-client.pages": [["/1kB"], ["/90kB"]], "hosts.mobile.app.http-client.connections": 1}
    keys = {**pages, "hosts.mobile.app.http-client.keep_alive": False, "run.record": ["pcapng"]}
    capture = al.load("umts-page", keys).run(seed=1, out=tmp_path / "two").capture
    other = al.load("umts-page", {**keys, "links.internet.delay": "60ms"}).run(seed=1, out=tmp_path / "b").capture
    assert capture is not None
    assert other is not None
    analysis = al.analyze(capture)
    busiest, _ = analysis.busiest()
    first = analysis.trace["connection"].to_list().index(busiest)
    assert first > 0
    for rows in (first, first + 20):
        monkeypatch.setattr(captures, "MOST_ROWS", rows)
        found = al.compare(capture, other)
        assert found.notes == [
            f"{name} is long: of its segments the first {rows} are looked at one by one" for name in "AB"
        ]
        assert len(found.figures()) == (rows > first)
        # That one has no more segments than the other is nothing that is known.
        assert all(part.what for part in found.firsts)
        assert al.compare(capture, capture).is_equal


def test_connections_go_together_by_what_they_have_in_common() -> None:
    from airloom.comparison.captures import _pairs

    def connection(number: int, client: str, server: str, interface: str = "eth0") -> dict[str, object]:
        return {"number": number, "interface": interface, "client": client, "server": server}

    a = [connection(0, "10.0.0.1:4001", "10.0.0.9:80"), connection(1, "10.0.0.1:4002", "10.0.0.9:80")]
    # The same port first, then the same client, at last whoever is left.
    b = [connection(0, "10.0.0.1:5000", "10.0.0.9:80"), connection(1, "10.0.0.1:4001", "10.0.0.9:80")]
    assert [(pair.one, pair.other) for pair in _pairs(a, b)] == [(a[0], b[1]), (a[1], b[0])]
    elsewhere = [connection(0, "192.168.0.7:5000", "192.168.0.1:8080", "lo")]
    assert [(pair.one, pair.other) for pair in _pairs(a[:1], elsewhere)] == [(a[0], elsewhere[0])]
    assert [(pair.one, pair.other) for pair in _pairs(a, elsewhere)] == [
        (a[0], None),
        (a[1], None),
        (None, elsewhere[0]),
    ]


def test_loads_are_compared_by_link_and_proxy(tmp_path: Path) -> None:
    for folder, times in (("a", (2000, 2200)), ("b", (2500, 2600))):
        for seed, time in enumerate(times, 1):
            place = tmp_path / folder / "umts-dch-none" / f"run-{seed}"
            place.mkdir(parents=True)
            seen = {"link": "umts-dch", "proxy": "none", "seed": seed, "error": None, "load": time, "requests": [{}]}
            (place / "load.json").write_text(json.dumps(seen))
    row = al.compare(tmp_path / "a", tmp_path / "b").table.filter(measure="page_s").row(0, named=True)
    assert (row["first"], row["value"], row["seeds"]) == (2.1, 2.55, 2)
    assert row["difference"] == pytest.approx(0.45)


def test_loads_of_common_seeds_are_pairs_whatever_became_of_the_others(tmp_path: Path) -> None:
    for folder, times in (("a", (2000, 2200, 9000)), ("b", (2500, None, 9500))):
        for seed, time in enumerate(times, 1):
            place = tmp_path / folder / "umts-dch-none" / f"run-{seed}"
            place.mkdir(parents=True)
            seen = {"link": "umts-dch", "proxy": "none", "seed": seed, "error": None if time else "no answer"}
            (place / "load.json").write_text(json.dumps({**seen, "load": time, "requests": [{}]}))
    row = al.compare(tmp_path / "a", tmp_path / "b").table.filter(measure="page_s").row(0, named=True)
    assert (row["first"], row["value"], row["difference"], row["seeds"]) == (2.2, 6.0, 0.5, 2)


def test_loads_by_another_version_of_http_are_another_load(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        for version, time in (("2", 2000.0), ("3", 1500.0)):
            place = tmp_path / folder / f"umts-dch-none-{version}" / "run-1"
            place.mkdir(parents=True)
            seen = {"link": "umts-dch", "proxy": "none", "http": version, "seed": 1, "error": None, "load": time}
            (place / "load.json").write_text(json.dumps(seen))
    table = al.compare(tmp_path / "a", tmp_path / "b").table.filter(measure="page_s")
    assert dict(table.select("load", "first").rows()) == {
        "umts-dch, proxy none, HTTP/2": 2.0,
        "umts-dch, proxy none, HTTP/3": 1.5,
    }


def test_axes_may_be_whole_numbers_in_one_sweep_and_be_called_as_a_column_of_comparisons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = [{"label": "one", "set": {}}, {"label": "two", "set": {"links.internet.delay": "1ms"}}]
    for name, losses in (("whole", [0, 1]), ("fractions", [0, 0.5])):
        al.load("umts-page").sweep({"links.internet.loss.uplink": losses, "first": first}, seeds=[1]).run(out=name)
    found = al.compare("whole", "fractions")
    assert found.levels == ["links.internet.loss.uplink", "axis.first"]
    assert len(found.figures()) == 2


def test_the_page_has_tables_pictures_and_the_first_packet(place: Path, look: Open) -> None:
    for one, other in (("a", "b"), ("s", "t"), ("a/trace.pcapng", "b/trace.pcapng")):
        target = place / "comparison.html"
        done = inside("compare", place / one, place / other, "--html", target)
        assert done.code == 0, done.err
        for width in (1280, 390):
            with look(target, width=width) as seen:
                assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert seen.page.locator("#pictures img").count() >= 1
                assert seen.page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 100)")
                assert seen.page.locator("#differences table").count() >= 1


def test_what_cannot_be_compared_is_said_in_a_line(place: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, why in (
        ((place / "a",), "two results"),
        ((place / "a", place / "s"), "only results of one kind"),
        ((place / "a", tmp_path / "nowhere"), "is not there"),
        ((place / "a", tmp_path / "empty"), "is no result"),
    ):
        done = inside("compare", *words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert why in done.err


def test_settings_are_keys_with_dots() -> None:
    one = {"hosts": {"a": {"app": [{"bulk": {"size": "1MB"}}]}}}
    other = {"hosts": {"a": {"app": [{"bulk": {"size": "2MB"}}]}, "b": {}}}
    assert settings([one, other]) == {"hosts.a.app.0.bulk.size": ["1MB", "2MB"], "hosts.b": [None, {}]}


def test_sweeps_that_vary_nothing_are_compared(tmp_path: Path) -> None:
    for name, keys in (("a", {}), ("b", {"links.internet.delay": "60ms"})):
        al.load("umts-page", keys).sweep({}, seeds="1..3").run(out=tmp_path / name, workers=1)
    row = al.compare(tmp_path / "a", tmp_path / "b").table.filter(measure="page_load_s").row(0, named=True)
    assert (row["seeds"], row["same"]) == (3, False)
    assert row["value"] > row["first"]


def test_levels_that_are_nearly_the_same_are_points_of_their_own(tmp_path: Path) -> None:
    for name, losses in (("a", [0.10001, 0.10002]), ("b", [0.10001])):
        al.load("umts-page").sweep({LOSS: losses}, seeds=[1]).run(out=tmp_path / name, workers=1)
    found = al.compare(tmp_path / "a", tmp_path / "b")
    assert found.table[LOSS].unique().to_list() == [0.10001]
    assert found.is_equal
    assert found.notes == ["1 points are in A alone, such as 0.10002"]


def test_sweeps_whose_medians_are_equal_differ_if_a_run_does(tmp_path: Path) -> None:
    # Of five seeds some lose a packet.
    page = al.load("umts-page", {"links.radio.loss": 0})
    for name, loss in (("a", 0), ("b", 0.00002), ("same", 0)):
        page.with_keys({LOSS: loss}).sweep({"links.internet.delay": ["20ms"]}, seeds="1..5").run(
            out=tmp_path / name, workers=1
        )
    found = al.compare(tmp_path / "a", tmp_path / "b", measures=["page_load_s"])
    row = found.table.row(0, named=True)
    assert (row["first"], row["difference"], row["same"]) == (row["value"], 0.0, False)
    assert not found.is_equal
    assert al.compare(tmp_path / "a", tmp_path / "same").is_equal


def test_loads_that_failed_have_no_requests(tmp_path: Path) -> None:
    for folder, seeds, failed in (("a", (1, 2, 3), (2,)), ("b", (1, 2, 3), ())):
        for seed in seeds:
            place = tmp_path / folder / f"run-{seed}"
            place.mkdir(parents=True)
            error = "net::ERR_TIMED_OUT" if seed in failed else None
            seen = {"link": "dch", "proxy": "none", "seed": seed, "error": error, "load": 2000, "requests": [{}] * 15}
            (place / "load.json").write_text(json.dumps({**seen, "requests": []} if error else seen))
    row = al.compare(tmp_path / "a", tmp_path / "b").table.filter(measure="requests").row(0, named=True)
    assert (row["first"], row["value"], row["difference"]) == (15, 15, 0)


def test_a_measure_that_no_result_has_is_refused_and_one_that_is_asked_for_decides(place: Path) -> None:
    done = inside("compare", place / "a", place / "b", "--measure", "page_lod_s", "--exit-code")
    assert done.code == 2
    assert "did you mean page_load_s?" in done.err
    same = ("compare", place / "a", place / "b", "--exit-code", "--measure")
    assert [inside(*same, name).code for name in ("page_load_s", "pages")] == [1, 0]
