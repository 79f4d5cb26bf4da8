//! Harnesses for the tests of all families.
