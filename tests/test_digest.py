"""What a summary says first, and what it leaves out."""

import re
from pathlib import Path

import pytest

import airloom as al
from airloom import digest
from airloom.measures import groups
from tests.cli.shell import airloom


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> al.Run:
    return al.load("umts-page").run(seed=4, out=tmp_path_factory.mktemp("digest") / "run")


def test_numbers_stand_by_groups_without_zeros_and_repetitions(page: al.Run) -> None:
    shown = digest.grouped(page.summary)
    assert shown[0].title == "Pages and objects"
    assert shown[0].lines[0] == ("page_load_s", page.summary["page_load_s"])
    keys = [key for group in shown for key, _ in group.lines]
    assert len(keys) == len(set(keys)) < 30
    assert all(page.summary[key] != 0 and "." not in key for key in keys)
    assert not {"page_load_max_s", "page_load_mean_s", "completion_s", "simulated_s", "requests_sent"} & set(keys)
    everything = digest.grouped(page.summary, everything=True)
    assert sorted(key for group in everything for key, _ in group.lines) == sorted(page.summary)
    titles = [group.title for group in everything]
    assert titles == [title for title in groups().values() if title in titles], "every number has a group"


def test_what_differs_is_no_repetition() -> None:
    summary = {
        "page_load_s": 2.0,
        "page_load_mean_s": 2.0,
        "page_load_min_s": 1.0,
        "page_load_max_s": 3.0,
        "completion_s": 9.0,
    }
    (group,) = digest.grouped({**summary, "pages": 2.0})[:1]
    assert [key for key, _ in group.lines] == ["page_load_s", "page_load_min_s", "page_load_max_s", "pages"]


def test_what_people_ask_is_answered_in_words() -> None:
    summary = {"completion_s": 64.83, "transfers": 1.0, "bytes": 2e6, "goodput_bit_s": 246_799.0}
    summary |= {"packets": 1872.0, "lost": 233.0, "wan.downlink.queue_drops": 47.0}
    summary |= {"segments": 1872.0, "resent": 197.0, "rto_count": 1.0, "spurious": 1.0}
    summary |= {"rlc_pdus": 55_468.0, "rlc_resent": 2686.0}
    summary |= {"radio.downlink.delivered_bytes": 2.07e6, "radio.uplink.delivered_bytes": 17_300.0}
    assert digest.asked(summary) == [
        ("transfer", "64.83 s; 2 MB; 246.8 kbit/s"),
        ("sent again", "TCP 197 of 1 872 segments (11 %), RLC 2 686 of 55 468 PDUs (4.8 %), 1 timeout, 1 needless"),
        ("lost", "233 of 1 872 datagrams, 47 of them in queues"),
        ("cost", "2.07 MB down and 17.3 kB up over radio"),
    ]
    ping = {"rtt_median_s": 0.12, "sent": 10.0, "received": 9.0}
    assert digest.asked(ping) == [("round trip", "120 ms (median); 9 of 10 answered")]
    assert digest.asked({}) == []


def test_what_one_radio_repeated_is_no_share_of_what_another_sent() -> None:
    summary = {"u.downlink.rlc_pdus": 1000.0, "u.downlink.rlc_resent": 10.0}
    summary |= {"g.downlink.rlc_blocks": 200.0, "g.downlink.rlc_resent": 20.0}
    assert digest.asked(summary) == [("sent again", "RLC 10 of 1 000 PDUs (1 %), RLC 20 of 200 blocks (10 %)")]


def test_a_run_begins_with_the_answers(tmp_path: Path) -> None:
    done = airloom("run", "umts-page", "--out", tmp_path / "run")
    lines = done.out.splitlines()
    assert re.match(r"page +[\d.]+ s; 9 objects, 200 kB", lines[1])
    assert re.match(r"how sure +one run, seed 1: no interval", lines[2])
    assert re.match(r"sent again +TCP \d+ of \d+ segments.*, RLC \d+ of", lines[3])
    assert re.match(r"cost +.* over radio", lines[4])
    assert "page_load_mean_s" not in done.out
    more = airloom("run", "umts-page", "--out", tmp_path / "run", "--all")
    assert "page_load_mean_s" in more.out
    assert "radio.downlink.rlc_resent" in more.out
    assert "more (zeros" not in more.err


def test_other_transports_have_their_names(tmp_path: Path) -> None:
    found = dict(digest.of_run(al.load("sctp-page").run(out=tmp_path / "run")))
    assert found["sent again"].startswith("SCTP ")


def test_each_host_that_loads_pages_has_a_line_and_so_has_a_page_that_never_came() -> None:
    several = {
        "far.page_load_s": 25.4,
        "far.pages": 1,
        "far.objects": 1,
        "far.bytes": 2e6,
        "near.pages": 1,
        "near.failed": 3,
    }
    assert digest.asked(several)[:2] == [
        ("page, far", "25.4 s; 1 object, 2 MB"),
        ("page, near", "none of 1 arrived; 3 objects failed"),
    ]
    some = {"pages": 3, "pages_failed": 1, "page_load_s": 2.0, "page_load_min_s": 1.0, "page_load_max_s": 3.0}
    assert digest.asked(some)[0] == ("page", "2 s, the mean of 2 (1 to 3); 0 objects, 0 B; 1 page failed")
    many = {f"mobile[{n}].{key}": 1.0 for n in range(20) for key in ("pages", "page_load_s")}
    assert digest.asked(many)[4] == ("pages", "of 16 hosts more: --all")
    failed = al.load("umts-page", {"hosts.mobile.transport": "quic"}).run(1)
    assert digest.of_run(failed)[0] == ("page", "none of 1 arrived; 9 objects failed")
