"""The reference of what can stand in a scenario, read from the schemas of the Rust configuration types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any, NamedTuple

from airloom import _core, measures
from airloom.errors import UsageError
from airloom.scenario import shipped

#: What can be listed.
KINDS = ("bearers", "transports", "apps", "proxies", "presets", "scenarios", "studies", "measures")


class Key(NamedTuple):
    """A key of an entry's table."""

    name: str
    type: str
    default: str
    meaning: str


def names(kind: str) -> list[str]:
    """The names of a kind.

    >>> "wireline" in names("bearers")
    True
    """
    if kind == "measures":
        return measures.names()
    return list(summaries(kind))


def summaries(kind: str) -> dict[str, str]:
    """The first paragraph about each entry of a kind, by name."""
    if kind == "scenarios":
        return shipped()
    if kind == "presets":
        from airloom.presets import presets

        return {name: preset.figures for name, preset in presets().items()}
    if kind == "studies":
        from airloom.studies import titles

        return titles()
    return {name: _paragraph(json.loads(schema)) for name, schema in _registry(kind).items()}


def schema(kind: str, name: str) -> dict[str, Any]:
    """The JSON schema of an entry's table."""
    entries = _registry(kind)
    if name not in entries:
        raise UsageError(f"no {name!r} among the {kind}; valid: {', '.join(entries)}")
    return json.loads(entries[name])  # type: ignore[no-any-return]


def description(kind: str, name: str) -> str:
    """What an entry is."""
    return str(schema(kind, name).get("description", "")).strip()


def keys(kind: str, name: str) -> list[Key]:
    """The keys of an entry's table; those of a table inside it follow it, as `rlc.window`.

    >>> [key.name for key in keys("bearers", "wireline")][4:7]
    ['loss', 'duplication', 'duplication.probability']
    """
    whole = schema(kind, name)
    return _keys(whole, whole.get("$defs", {}), "", whole.get("x-defaults"))


class Choice(NamedTuple):
    """A value that a key can have, and what it means."""

    name: str
    meaning: str


class Profile(NamedTuple):
    """A named set of values."""

    name: str
    #: What it is and where its values come from.
    source: str
    #: The values that are not those of the first profile, by key.
    differences: dict[str, Any]


def profiles(kind: str, name: str) -> list[Profile]:
    """The profiles of an entry, with what each sets differently from the first.

    >>> [p.name for p in profiles("transports", "tcp")]
    ['rfc', 'linux', 'linux-classic', 'bsd-reno', 'nt4', 'win98', 'w-tcp']
    """
    found = schema(kind, name).get("x-profiles", {})
    about = {choice.name: choice.meaning for choice in choices(kind, name, "profile")} if found else {}
    return [Profile(profile, about.get(profile, ""), values) for profile, values in found.items()]


def choices(kind: str, name: str, key: str) -> list[Choice]:
    """The named values that a key of an entry can have.

    >>> [c.name for c in choices("transports", "tcp", "congestion")]
    ['tahoe', 'reno', 'newreno', 'cubic', 'westwood', 'vegas', 'probing', 'bbr']
    """
    whole = schema(kind, name)
    about = whole.get("properties", {}).get(key, {})
    for option in about.get("anyOf", [about]):
        if "$ref" in option:
            about = whole.get("$defs", {}).get(str(option["$ref"]).rsplit("/", 1)[-1], {})
    return [Choice(str(c["const"]), _paragraph(c)) for c in about.get("oneOf", []) if "const" in c]


def _keys(table: dict[str, Any], definitions: dict[str, Any], prefix: str, defaults: object) -> list[Key]:
    required = table.get("required", [])
    found = []
    for key, about in table.get("properties", {}).items():
        default = about.get("default", defaults.get(key) if isinstance(defaults, dict) else None)
        inner = _inner_table(about, definitions)
        if key in required and default is None:
            shown = "(needed)"
        elif default is None or inner:
            shown = ""
        else:
            shown = json.dumps(default, ensure_ascii=False)
        found.append(Key(prefix + key, "table" if inner else _type(about, definitions), shown, _paragraph(about)))
        if inner:
            found += _keys(inner, definitions, f"{prefix}{key}.", default)
    return found


def _inner_table(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any] | None:
    """The table that a key holds, if that is the only thing it can hold."""
    choices = [s for s in about.get("anyOf", [about]) if s.get("type") != "null"]
    if len(choices) != 1:
        return None
    only = choices[0]
    if "$ref" in only:
        only = definitions.get(str(only["$ref"]).rsplit("/", 1)[-1], {})
    return only if "properties" in only else None


def interfaces(understood: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Link, host and addresses (IPv4, IPv6) of all interfaces of a scenario as understood; a link's far end is last."""
    hosts = understood["hosts"]
    for link, keys in understood["links"].items():
        if written := keys.get("addresses"):
            yield from ((link, host, own) for host, own in written.items())
            continue
        # Not written of a large link where they are its networks' own: the far end's are the first ones.
        *stations, far = (member for end in keys["between"] for member in _members(hosts, end))
        networks = [ip_network(keys[network]) for network in ("subnet", "subnet6")]
        for number, host in [*enumerate(stations, 2), (1, far)]:
            yield link, host, [str(network[number]) for network in networks]


def _members(hosts: Mapping[str, Any], name: str) -> list[str]:
    count = hosts.get(name, {}).get("count")
    return [name] if count is None else [f"{name}[{member}]" for member in range(count)]


def addresses(understood: Mapping[str, Any], host: str) -> list[str]:
    """The IPv4 addresses of a host of a scenario as understood, or of all of a group, in order of its links."""
    named = [own for _, name, own in interfaces(understood) if host in (name, name.split("[")[0])]
    return [address for own in named for address in own if ":" not in address]


def addresses_of_all(understood: Mapping[str, Any]) -> dict[str, list[str]]:
    """The IPv4 addresses of each host of a scenario as understood, in order of its links."""
    found: dict[str, list[str]] = {}
    for _, host, own in interfaces(understood):
        found.setdefault(host, []).extend(address for address in own if ":" not in address)
    return found


def _registry(kind: str) -> dict[str, str]:
    if kind not in KINDS:
        raise UsageError(f"no kind {kind!r}; valid: {', '.join(KINDS)}")
    return dict(_core.registry(kind))


def _paragraph(schema: dict[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split("\n\n")[0].split())


def _type(schema: dict[str, Any], definitions: dict[str, Any], depth: int = 0) -> str:
    """A schema in a few words: `rate`, `text | table`, `"a" | "b"`."""
    if depth > 8:
        return "..."
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return _type(definitions.get(name, {}), definitions, depth + 1) or name
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(v) for v in schema["enum"] if v is not None)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            parts = [_type(s, definitions, depth + 1) for s in schema[several] if s.get("type") != "null"]
            return " | ".join(dict.fromkeys(p for p in parts if p))
    kind = schema.get("type", "")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if k != "null"]
    if kinds == ["object"] and "properties" in schema:
        return "{ " + ", ".join(schema["properties"]) + " }"
    if kinds == ["array"]:
        return f"[{_type(schema.get('items', {}), definitions, depth + 1)}, ..]"
    plain = {"string": "text", "boolean": "true | false", "object": "table", "integer": "whole number"}
    return " | ".join(str(plain.get(k, k)) for k in kinds)
