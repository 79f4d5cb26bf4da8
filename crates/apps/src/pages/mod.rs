//! Lists of objects to load, page after page: what browsers of every protocol have in common.
//!
//! [`Plan`] says which page begins when, [`Page`] which objects of it wait and what has come of the others, [`Loads`]
//! keeps the results. Pages are listed, or drawn from a model ([`Traffic`]).

mod loads;
mod object;
mod page;
mod plan;
mod traffic;

pub(crate) use loads::Loads;
pub use object::{Object, SizedObject};
pub(crate) use page::{Job, Page};
pub(crate) use plan::{List, Plan};
pub use traffic::{Model, Traffic};
