//! Web pages -> simple decks: headings, text, styles, links, forms; pictures as their words.
//!
//! ```text
//! page -> html5gum (tokens as browsers read them) -> convert -> flow (paragraphs) and form (fields) -> Document
//! ```
//!
//! One card holds the page; [`super::split`] makes several of it where it is too large. Nothing on a page is an error: what has no
//! counterpart (scripts, styles, objects) is left out with all inside it, unknown elements are as if they were not there.
//! Tables become lines of their cells, radio buttons of one name a selection. Addresses stay as they are, relative to the page's own, which the client knows.
//!
//! Left out: `<base>`, image maps, frames but for a link to each, files in forms.

mod convert;
mod flow;
mod form;
mod radios;

pub use convert::convert;
