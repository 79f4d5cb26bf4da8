//! Settings of a machine as they are given on a command line.

use airloom_base::ConfigError;
use serde_json::Value;

/// The table that `KEY=VALUE` settings make: keys with dots are tables in tables, values are TOML, and text if they are
/// nothing else (`idle=10min`).
///
/// # Errors
/// The key that is none, or that is given twice.
pub fn table<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Value, ConfigError> {
    let mut table = Value::Object(serde_json::Map::new());
    for (key, text) in settings {
        let value = toml::from_str::<toml::Table>(&format!("x = {text}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|table| serde_json::to_value(&table["x"]).ok())
            .unwrap_or_else(|| Value::String(text.to_owned()));
        let path: Vec<&str> = key.split('.').collect();
        put(&mut table, &path, value).ok_or_else(|| ConfigError::at(key, "is no key, or given twice"))?;
    }
    Ok(table)
}

fn put(table: &mut Value, path: &[&str], value: Value) -> Option<()> {
    let (first, rest) = path.split_first().filter(|(first, _)| !first.is_empty())?;
    let table = table.as_object_mut()?;
    if rest.is_empty() {
        return if table.insert((*first).to_owned(), value).is_none() { Some(()) } else { None };
    }
    put(table.entry(*first).or_insert_with(|| Value::Object(serde_json::Map::new())), rest, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_make_tables_and_what_is_no_toml_is_text() {
        let given = [
            ("wtp.acks", "3"),
            ("wtp.guard", "4s"),
            ("a", "true"),
            ("b", "\"x\""),
            ("c", "1\ny = 2"),
            ("d", ""),
        ];
        let table = table(given).expect("a table");
        let expected = serde_json::json!({
            "wtp": { "acks": 3, "guard": "4s" }, "a": true, "b": "x", "c": "1\ny = 2", "d": "",
        });
        assert_eq!(table, expected);
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        for wrong in [
            vec![("", "1")],
            vec![("a..b", "1")],
            vec![("a", "1"), ("a", "2")],
            vec![("a", "1"), ("a.b", "2")],
        ] {
            let last = wrong.last().expect("a setting").0;
            assert_eq!(table(wrong).expect_err("wrong").path, [last]);
        }
    }
}
