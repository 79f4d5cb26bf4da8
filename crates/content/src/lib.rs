//! What applications carry: HTTP messages, and the documents of WAP.

pub mod charset;
pub mod http;
pub mod markup;
pub mod service;
pub mod wbxml;
pub mod wml;
