//! Tests of whole networks.
