//! Compact encoding of headers (WAP-230, section 8.4): HTTP headers as text <-> numbers for names and values that are known.
//!
//! ```text
//! Accept-Charset: utf-8          81 EA              a number for the name, a number for the value
//! Accept: text/vnd.wap.wml       80 88
//! User-Agent: x                  A9 'x' 00          a number for the name, text
//! X-Own: y                       'X-Own' 00 'y' 00  all text
//! ```
//!
//! [`Encoder`] writes one text header after the other; what a list holds becomes a header each. What the numbers cannot say is
//! sent as text under the name as text, so nothing is lost. [`decode`] gives the text again. A peer says which numbers it knows
//! by its encoding version; without word from it they are those of 1.2.
//!
//! One file a kind of value, each with both directions: [`media`] (with parameters), [`weighted`] (what has a q), [`cache`],
//! [`credentials`], [`cookie`], [`range`], [`plain`] (all others). Numbers: [`fields`], [`media_types`], [`languages`],
//! [`parameters`], [`applications`].
//!
//! Left out: `Profile-Diff` and `X-Wap-Loc-Delivery`, which carry documents of their own and are handed over unread
//! ([`Header::value`] is [`Value::Octets`]).

mod applications;
mod cache;
mod cookie;
mod credentials;
mod date;
mod decode;
mod element;
mod encode;
mod fields;
mod index;
mod languages;
mod media;
mod media_types;
mod names;
mod parameters;
mod plain;
mod range;
mod read;
mod weighted;
mod write;

pub use decode::{Header, Pages, Value, decode, decode_content_type, encoding_version};
pub use encode::{Encoder, Version};
