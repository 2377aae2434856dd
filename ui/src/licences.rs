//! The crates in the program and their licences. The list is a file, so that builds need no other tool. A test
//! compares it with the metadata of Cargo.

/// One line per crate: name, version and licence.
const LIST: &str = include_str!("../licences.txt");

/// Name with version, and licence, ordered by name.
pub fn licences() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once('\t'))
}
