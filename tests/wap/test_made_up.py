"""Decks and pages that the simulated server makes up, through the simulated gateway."""

import airloom as al


def test_decks_are_compiled_pages_converted_and_the_rest_passed_on() -> None:
    scenario = al.load("wap-page", {"hosts.mobile.app.wap-browser.pages": [["/5kB.wml"], ["/5kB.html"], ["/5kB"]]})
    pages = scenario.run(seed=1).pages
    deck, page, rest = pages["bytes"].to_list()
    assert pages["failed"].to_list() == [0, 0, 0]
    assert 1_000 < deck < 4_900  # tokens are shorter than tags
    assert 1_000 < page < 4_900
    assert deck != page
    assert rest == 5_000
