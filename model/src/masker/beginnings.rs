//! The set of the first two bytes of all patterns. One check per byte skips nearly all text, and is several times as
//! fast as the automaton.

use std::collections::BTreeSet;

/// One bit per pair of bytes.
pub(super) struct Beginnings(Box<[u64]>);

impl Beginnings {
    /// The beginnings of all patterns of at least two bytes.
    pub(super) fn of(patterns: &BTreeSet<Vec<u8>>) -> Self {
        let mut pairs = vec![0; (1 << 16) / 64];
        for pattern in patterns {
            if let [first, second, ..] = **pattern {
                let (word, bit) = place(first, second);
                pairs[word] |= bit;
            }
        }
        Self(pairs.into())
    }

    /// The first position where a pattern may begin. The last byte is always such a position.
    pub(super) fn find(&self, text: &[u8]) -> usize {
        text.windows(2)
            .position(|pair| {
                let (word, bit) = place(pair[0], pair[1]);
                self.0[word] & bit != 0
            })
            .unwrap_or(text.len().saturating_sub(1))
    }
}

fn place(first: u8, second: u8) -> (usize, u64) {
    let pair = u16::from_be_bytes([first, second]);
    (usize::from(pair >> 6), 1 << (pair & 63))
}
