//! Transactions and sessions of WAP 1.x over datagrams: WTP, and WSP above it. Their gateway and browser are applications
//! (`proxies`, `apps`); WML and WBXML are `content`.

pub mod shares;
pub mod unpredictable;
pub mod wsp;
pub mod wtp;
