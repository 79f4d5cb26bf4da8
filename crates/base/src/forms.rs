//! Forms that a value of a scenario has: text, and one value or a table.
//!
//! These visitors are written by hand where serde-untagged would do: what that makes of each type was 45 % of all that there was to
//! compile in `airloom-bearers`.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess, Visitor};

/// Reads text, which is what this says.
pub(crate) struct Text<T>(&'static str, PhantomData<T>);

impl<T> Text<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Text(what, PhantomData)
    }
}

impl<T: FromStr<Err = String>> Visitor<'_> for Text<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Reads a value (a number or text) that is a `One`, or a table that is a `Table`.
pub struct OneOrTable<One, Table, T> {
    /// What it is, for errors.
    pub expecting: &'static str,
    /// What the one means.
    pub one: fn(One) -> T,
    /// And the other.
    pub table: fn(Table) -> T,
}

impl<'de, One: Deserialize<'de>, Table: Deserialize<'de>, T> Visitor<'de> for OneOrTable<One, Table, T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        One::deserialize(value.into_deserializer()).map(self.one)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        One::deserialize(value.into_deserializer()).map(self.one)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        One::deserialize(value.into_deserializer()).map(self.one)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        One::deserialize(value.into_deserializer()).map(self.one)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(self.table)
    }
}
