//! A test that its caller puts behind a link: `airloom emulate wpt/3g --seed 7 -- cargo test --offline`.
