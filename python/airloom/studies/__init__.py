"""Replications of papers, one folder each; `airloom.study` is what runs and judges them."""

from importlib import resources


def titles() -> dict[str, str]:
    """What each study is about, by name: the first heading of its README.

    >>> "WAP" in titles()["wap-vs-http-wcdma"]
    True
    """
    found = {}
    for folder in sorted((resources.files("airloom") / "studies").iterdir(), key=lambda f: f.name):
        if (folder / "claims.toml").is_file():
            lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
            found[folder.name] = next((line[2:].strip() for line in lines if line.startswith("# ")), folder.name)
    return found
