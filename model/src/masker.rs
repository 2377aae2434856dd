//! Hides secrets in text before the text is stored or sent.
//!
//! It hides every byte of a secret, of its lines and of their encodings. Each unbroken run of hidden bytes becomes one
//! [`MASK`], so overlapping secrets are all hidden. The result does not depend on how a stream is cut into pieces,
//! because the end of a stream is kept while it may be the beginning of a secret.

mod beginnings;
mod encodings;
mod patterns;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use thiserror::Error;

use beginnings::Beginnings;
pub use encodings::{EncodingCheck, MaskingCheck, Missed, check_masking};
pub use patterns::short_lines;

/// Replaces a secret.
const MASK: &[u8] = b"***";

/// No automaton can be built for the secrets.
#[derive(Debug, Error)]
#[error("the job's secrets are too large to be masked")]
pub struct MaskerError(#[from] aho_corasick::BuildError);

#[derive(Clone, Default)]
pub struct Masker(Option<Arc<Automaton>>);

/// All patterns in one automaton, which reads each byte at most once.
struct Automaton {
    beginnings: Beginnings,
    nfa: NFA,
    start: StateID,
    /// For each state: the length of the longest suffix of the input that is a proper prefix of a pattern. A missing
    /// state means 0.
    begun: HashMap<StateID, u32>,
}

impl Masker {
    /// A masker of these secrets. Secrets of less than three characters are not hidden, because they occur in every text.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, MaskerError> {
        let mut patterns = BTreeSet::new();
        for secret in secrets {
            patterns::add(secret, &mut patterns);
        }
        if patterns.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(Arc::new(Automaton::new(&patterns)?))))
    }

    pub fn mask(&self, text: &str) -> String {
        if self.0.is_none() {
            return text.to_owned();
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut stream = self.stream();
        stream.push(text.as_bytes(), &mut masked);
        stream.finish(&mut masked);
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Hides secrets in a text that arrives in pieces.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            reader: self.0.as_ref().map(|automaton| Reader {
                state: automaton.start,
                automaton: automaton.clone(),
                kept: Vec::new(),
                hidden: VecDeque::new(),
                in_run: false,
            }),
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Masker(***)")
    }
}

impl Automaton {
    fn new(patterns: &BTreeSet<Vec<u8>>) -> Result<Self, MaskerError> {
        let nfa = NFA::builder()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(patterns)?;
        // An unanchored automaton always has a start state.
        let start = nfa.start_state(Anchored::No).unwrap_or_default();
        let mut automaton = Self {
            beginnings: Beginnings::of(patterns),
            nfa,
            start,
            begun: HashMap::new(),
        };
        for pattern in patterns {
            let mut state = start;
            for (at, byte) in (0..).zip(pattern) {
                if at > 0 {
                    automaton.begun.insert(state, at);
                }
                state = automaton.next(state, *byte);
            }
        }
        // If a pattern is not a prefix of a longer pattern, its longest begun prefix is the one of the pattern without
        // its first byte.
        let mut by_length: Vec<&Vec<u8>> = patterns.iter().collect();
        by_length.sort_by_key(|pattern| pattern.len());
        for pattern in by_length {
            let after = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(start, |state, byte| automaton.next(state, *byte))
            };
            let (whole, end) = (after(pattern), after(&pattern[1..]));
            let begun = automaton.begun(end);
            automaton.begun.entry(whole).or_insert(begun);
        }
        Ok(automaton)
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.nfa.next_state(Anchored::No, state, byte)
    }

    fn begun(&self, state: StateID) -> u32 {
        self.begun.get(&state).copied().unwrap_or(0)
    }

    /// The length of the longest pattern that ends here.
    fn ended(&self, state: StateID) -> Option<usize> {
        if !self.nfa.is_match(state) {
            return None;
        }
        (0..self.nfa.match_len(state))
            .map(|index| self.nfa.pattern_len(self.nfa.match_pattern(state, index)))
            .max()
    }
}

/// Hides secrets in a stream that arrives in pieces.
#[derive(Debug)]
pub struct MaskStream {
    reader: Option<Reader>,
}

impl MaskStream {
    /// Takes the next bytes. Appends to `out` the bytes that cannot belong to an unfinished secret.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.reader {
            None => out.extend_from_slice(bytes),
            Some(reader) => reader.push(bytes, out),
        }
    }

    /// Ends the stream. Appends the bytes that were kept.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(reader) = &mut self.reader {
            reader.release(reader.kept.len(), out);
            reader.state = reader.automaton.start;
            reader.in_run = false;
        }
    }
}

/// The state of a stream.
struct Reader {
    automaton: Arc<Automaton>,
    state: StateID,
    /// The end of the stream, not yet written to the output.
    kept: Vec<u8>,
    /// The hidden ranges of `kept`, in order and not adjacent.
    hidden: VecDeque<Range<usize>>,
    /// True if the output ends with a mask whose hidden run may continue.
    in_run: bool,
}

impl Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut at = self.kept.len();
        self.kept.extend_from_slice(bytes);
        while at < self.kept.len() {
            if self.state == self.automaton.start {
                at += self.automaton.beginnings.find(&self.kept[at..]);
            }
            self.state = self.automaton.next(self.state, self.kept[at]);
            if let Some(length) = self.automaton.ended(self.state) {
                let end = at + 1;
                self.hide(end.saturating_sub(length)..end);
            }
            at += 1;
        }
        let begun = self.automaton.begun(self.state) as usize;
        self.release(self.kept.len().saturating_sub(begun), out);
    }

    /// Adds a run. Its end must not be before the end of any other run.
    fn hide(&mut self, mut run: Range<usize>) {
        while let Some(last) = self.hidden.pop_back_if(|last| last.end >= run.start) {
            run.start = run.start.min(last.start);
        }
        self.hidden.push_back(run);
    }

    /// Writes the first `count` bytes to the output.
    fn release(&mut self, count: usize, out: &mut Vec<u8>) {
        let mut at = 0;
        while at < count {
            let run = self.hidden.front().cloned().unwrap_or(count..count);
            let plain = at..run.start.clamp(at, count);
            if !plain.is_empty() {
                out.extend_from_slice(&self.kept[plain.clone()]);
                self.in_run = false;
            }
            if plain.end < count && !self.in_run {
                out.extend_from_slice(MASK);
                self.in_run = true;
            }
            at = run.end.clamp(plain.end, count);
            if run.end <= count {
                self.hidden.pop_front();
            }
        }
        self.kept.drain(..count);
        for run in &mut self.hidden {
            *run = run.start.saturating_sub(count)..run.end - count;
        }
    }
}

/// Shows no part of the text.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}
