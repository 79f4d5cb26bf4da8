//! Keys that had another name: they are read as what they are called now, and their user is told.

use std::collections::BTreeSet;

use super::tree::{Kind, Node};

/// The table that has them, the old names and the new ones: those of RFC 9260, which SCTP has too.
const TABLE: &str = "tcp";
const RENAMED: [(&str, &str); 3] =
    [("initial_rto", "rto_initial"), ("min_rto", "rto_min"), ("max_rto", "rto_max")];

/// The old names that were met.
pub(super) type Met = BTreeSet<&'static str>;

/// The keys on the way to a value, by their names of today.
pub(super) fn path(path: &mut [String], met: &mut Met) {
    for place in 1..path.len() {
        if path[place - 1] == TABLE
            && let Some((old, new)) = renamed(&path[place])
        {
            met.insert(old);
            path[place] = new.to_owned();
        }
    }
}

/// Everything below `node`, which is the value of `key`. Where a table has a key by both names the old one stays, and is
/// refused as the unknown key that it is.
pub(super) fn below(node: &mut Node, key: &str, met: &mut Met) {
    match &mut node.kind {
        Kind::List(list) => list.iter_mut().for_each(|item| below(item, key, met)),
        Kind::Table(entries) => {
            for place in 0..entries.len() {
                if key == TABLE
                    && let Some((old, new)) = renamed(&entries[place].key)
                    && !entries.iter().any(|entry| entry.key == new)
                {
                    met.insert(old);
                    new.clone_into(&mut entries[place].key);
                }
                let entry = &mut entries[place];
                below(&mut entry.value, &entry.key, met);
            }
        }
        _ => {}
    }
}

/// What is to be said about them.
pub(super) fn notes(met: &Met) -> Vec<String> {
    let new = |old: &str| renamed(old).map_or("", |(_, new)| new);
    met.iter().map(|old| format!("`{old}` is called `{}` now", new(old))).collect()
}

fn renamed(key: &str) -> Option<(&'static str, &'static str)> {
    RENAMED.into_iter().find(|(old, _)| *old == key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn old_names_below_tcp_become_those_of_today() {
        let file = json!({ "hosts": { "a": { "transport": { "tcp": { "min_rto": "1s", "rto_tick": "0s" } } } },
                           "min_rto": 1, "list": [{ "tcp": { "max_rto": "9s" } }] });
        let (mut root, mut met) = (Node::from_json(&file), Met::new());
        below(&mut root, "", &mut met);
        let expected = json!({ "hosts": { "a": { "transport": { "tcp": { "rto_min": "1s", "rto_tick": "0s" } } } },
                               "min_rto": 1, "list": [{ "tcp": { "rto_max": "9s" } }] });
        assert_eq!(root.to_json(), expected);
        assert_eq!(notes(&met), ["`max_rto` is called `rto_max` now", "`min_rto` is called `rto_min` now"]);
    }

    #[test]
    fn a_key_by_both_its_names_is_left_to_be_refused() {
        let file = json!({ "tcp": { "min_rto": "1s", "rto_min": "2s" } });
        let mut root = Node::from_json(&file);
        below(&mut root, "", &mut Met::new());
        assert_eq!(root.to_json(), file);
    }

    #[test]
    fn options_have_the_old_names_too() {
        let names = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let (mut way, mut met) = (names("hosts.min_rto.transport.tcp.initial_rto"), Met::new());
        path(&mut way, &mut met);
        assert_eq!(way, names("hosts.min_rto.transport.tcp.rto_initial"));
        assert_eq!(notes(&met), ["`initial_rto` is called `rto_initial` now"]);
    }
}
