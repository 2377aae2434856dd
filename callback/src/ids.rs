//! The ids of servers and tags, and where they are in bytes that a stranger sent.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The id of a callback server: 16 base32 characters (80 bits) in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId([u8; 16]);

/// A tag of a server: 20 base32 characters (100 bits) in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; 20]);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` does not have {length} characters of a-z and 2-7")]
pub struct IdError {
    text: String,
    length: usize,
}
