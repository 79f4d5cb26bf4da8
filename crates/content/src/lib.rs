//! What applications carry: HTTP messages, pages.

pub mod http;
