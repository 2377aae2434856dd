//! The pages of the web UI: values of `wire` in, markup and assets out. Pure.
//!
//! A page shows only what `/v0` answers. Without scripts, everything works except live updates, the virtual log and
//! the finder. The pages keep a strict content security policy: no inline script, no inline style, no `style`
//! attribute and no `data:` address. Drawings are SVG with attributes.

pub mod assets;
pub mod chart;
pub mod form;
pub mod graph;
pub mod links;
pub mod pages;
pub mod shell;
pub mod topics;
pub mod words;

mod licences;
mod list;
mod sprite;

pub use licences::licences;
