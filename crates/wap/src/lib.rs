//! Transactions and sessions of WAP 1.x over datagrams: WTP, and WSP above it.
//!
//! Not here: their gateway and browser, which are applications (`proxies`, `apps`), WTLS (`apps`), WML and WBXML (`content`).

pub mod shares;
pub mod unpredictable;
pub mod wsp;
pub mod wtp;
