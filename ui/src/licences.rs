//! The crates in the program and their licences. The list is a file, so that a build needs no more than it, and a test
//! holds it to what Cargo says.

/// A line for each crate: name, version and licence.
const LIST: &str = include_str!("../licences.txt");

/// Name with version, and licence, in the order of names.
pub fn licences() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once('\t'))
}
