//! What applications carry: HTTP messages, pages.
