//! Numbers for Prometheus, in its text format 0.0.4.

use std::fmt::Write;

/// Media type of a page.
pub(super) const TYPE: &str = "text/plain; version=0.0.4";

/// A page of numbers whose names begin alike.
pub(super) struct Page {
    prefix: &'static str,
    text: String,
}

impl Page {
    /// An empty one.
    pub(super) fn new(prefix: &'static str) -> Page {
        Page { prefix, text: String::with_capacity(4096) }
    }

    fn number(&mut self, name: &str, kind: &str, help: &str, values: &[(&str, u64)]) {
        let prefix = self.prefix;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(self.text, "{prefix}_{name}{labels} {value}");
        }
    }

    /// What only grows, by its labels (`{side="client"}`, or nothing).
    pub(super) fn counter(&mut self, name: &str, help: &str, values: &[(&str, u64)]) {
        self.number(name, "counter", help, values);
    }

    /// What comes and goes.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.number(name, "gauge", help, &[("", value)]);
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.text
    }
}
