//! A column: values by their type, with or without gaps; and what a table is that grows.

use std::collections::BTreeMap;

/// The values of a column.
#[derive(Clone, Debug, PartialEq, derive_more::From)]
pub enum Values {
    /// Signed 64-bit integers (times).
    I64(Vec<i64>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Floating point numbers.
    F64(Vec<f64>),
    /// Texts that differ from row to row.
    Text(Vec<String>),
    /// Texts out of a small set: an index into `names` per row.
    #[from(skip)]
    Category {
        /// Index of each row's name.
        codes: Vec<u16>,
        /// The names, in order of their first appearance.
        names: Vec<String>,
    },
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::I64(v) => v.len(),
            Values::U64(v) => v.len(),
            Values::U32(v) => v.len(),
            Values::U16(v) => v.len(),
            Values::U8(v) => v.len(),
            Values::F64(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Category { codes, .. } => codes.len(),
        }
    }
    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Texts out of these, by their places.
    pub fn out_of(names: &[&str], codes: Vec<u16>) -> Values {
        Values::Category { codes, names: names.iter().map(|name| (*name).to_owned()).collect() }
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its values; where `valid` is false the value means nothing.
    pub values: Values,
    /// Is there a value in each row? `None`: always.
    pub valid: Option<Vec<bool>>,
}

/// A table that grows.
pub(super) trait Table {
    /// How many rows it has, as far as nothing more will come of them.
    fn rows(&self) -> usize;
    /// These rows, which go out of it; names that were given stay.
    fn take_rows(&mut self) -> Vec<Column>;
}

/// What a column is made of.
pub trait Cells {
    /// The column of this name.
    fn column(self, name: &'static str) -> Column;
}

impl<T> Cells for Vec<T>
where
    Vec<T>: Into<Values>,
{
    fn column(self, name: &'static str) -> Column {
        full(name, self.into())
    }
}

/// A table: by which column its rows are counted, what a row is made of, what is kept when rows go out of it, and each
/// column's name, kind and value.
macro_rules! table {
    (
        $(#[$about:meta])*
        $table:ident counted by $first:ident of ($row:ident: $record:ty)
        $(keeping { $($kept:ident: $kind:ty),* })?
        $(with { $(let $given:pat_param = $with:expr;)* })?
        { $($column:ident: $cells:ty = $value:expr;)+ }
    ) => {
        $(#[$about])*
        #[derive(Default)]
        pub(super) struct $table {
            $($($kept: $kind,)*)?
            $($column: $cells,)+
        }

        impl $table {
            pub(super) fn push(&mut self, $row: $record) {
                $($(let $kept = &self.$kept;)*)?
                $($(let $given = $with;)*)?
                $(self.$column.push($value);)+
            }

            pub(super) fn into_columns(self) -> Vec<Column> {
                vec![$(self.$column.column(stringify!($column))),+]
            }
        }

        impl Table for $table {
            fn rows(&self) -> usize {
                self.$first.len()
            }

            fn take_rows(&mut self) -> Vec<Column> {
                let empty = $table { $($($kept: std::mem::take(&mut self.$kept),)*)? ..Default::default() };
                std::mem::replace(self, empty).into_columns()
            }
        }
    };
}
pub(super) use table;

/// A column whose rows may be empty.
#[derive(Default)]
pub struct Optional<T> {
    values: Vec<T>,
    valid: Vec<bool>,
}

impl<T: Default> Optional<T> {
    /// One row more.
    pub fn push(&mut self, value: Option<T>) {
        self.valid.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }
}

impl<T> Cells for Optional<T>
where
    Vec<T>: Into<Values>,
{
    fn column(self, name: &'static str) -> Column {
        Column { name, values: self.values.into(), valid: Some(self.valid) }
    }
}

/// A column of texts out of a small set.
#[derive(Default)]
pub(super) struct Category {
    codes: Vec<u16>,
    names: Vec<String>,
    by_name: BTreeMap<String, u16>,
    last: u16,
}

impl Category {
    pub(super) fn push(&mut self, name: &str) {
        // Most rows repeat the name of the row before.
        if self.names.get(usize::from(self.last)).is_none_or(|n| n != name) {
            self.last = self.by_name.get(name).copied().unwrap_or_else(|| self.add(name));
        }
        self.codes.push(self.last);
    }
    /// Registers `name`. There are fewer than 65,536 names of points, links, hosts or states; should there ever
    /// be more, the rest share the last code.
    fn add(&mut self, name: &str) -> u16 {
        if let Ok(code) = u16::try_from(self.names.len()) {
            self.names.push(name.to_owned());
            self.by_name.insert(name.to_owned(), code);
        }
        (self.names.len() - 1) as u16
    }
    pub(super) fn values(self) -> Values {
        Values::Category { codes: self.codes, names: self.names }
    }
}

impl Cells for Category {
    fn column(self, name: &'static str) -> Column {
        full(name, self.values())
    }
}

/// A column of texts out of a small set, whose rows may be empty.
#[derive(Default)]
pub(super) struct OptionalCategory {
    category: Category,
    valid: Vec<bool>,
}

impl OptionalCategory {
    pub(super) fn push(&mut self, name: Option<&str>) {
        self.valid.push(name.is_some());
        match name {
            Some(name) => self.category.push(name),
            None => self.category.codes.push(0),
        }
    }
}

impl Cells for OptionalCategory {
    fn column(self, name: &'static str) -> Column {
        Column { name, values: self.category.values(), valid: Some(self.valid) }
    }
}

/// A column that has a value in each row.
pub(super) fn full(name: &'static str, values: Values) -> Column {
    Column { name, values, valid: None }
}

/// Nanoseconds as tables hold them.
pub(super) fn nanos(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_texts_share_a_code() {
        let mut c = Category::default();
        for name in ["a", "b", "b", "a", "c"] {
            c.push(name);
        }
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(c.values(), Values::Category { codes: vec![0, 1, 1, 0, 2], names });
    }

    #[test]
    fn an_empty_text_is_not_a_text() {
        let mut c = OptionalCategory::default();
        c.push(None);
        c.push(Some("a"));
        let column = c.column("reason");
        assert_eq!(column.valid, Some(vec![false, true]));
        assert_eq!(column.values, Values::Category { codes: vec![0, 0], names: vec!["a".to_owned()] });
    }
}
