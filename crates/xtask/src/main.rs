//! What is generated: schemas, reference pages, stubs.

fn main() {}
