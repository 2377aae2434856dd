//! SHA-256 while data passes by.

use sha2::{Digest as _, Sha256};

/// The digest of what has passed so far.
#[derive(Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in lower-case hexadecimal.
    pub(crate) fn finish(self) -> String {
        workflow::hex(&self.0.finalize())
    }
}
