//! Seeded random inputs for tests. They are the same in every run.

/// A small generator (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to `bound`, exclusive.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let at = usize::try_from(self.below(choices.len() as u64)).unwrap();
        choices[at]
    }

    /// Up to `longest` characters of `alphabet`.
    pub(crate) fn text(&mut self, alphabet: &str, longest: u64) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let length = self.below(longest + 1);
        (0..length)
            .map(|_| alphabet[usize::try_from(self.below(alphabet.len() as u64)).unwrap()])
            .collect()
    }
}
