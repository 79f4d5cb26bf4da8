//! What applications carry: HTTP messages of versions 1, 2 and 3 with their header blocks, and the documents of WAP (WML, WBXML, service
//! indications). Octets in, values out, and back; nothing here has a clock or a connection.
//!
//! Not here: who asks and answers (`apps`, `proxies`), and WSP's headers, which belong to its sessions (`wap`).

pub mod charset;
pub mod http;
pub mod markup;
pub mod service;
pub mod wbxml;
pub mod wml;
