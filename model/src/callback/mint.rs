//! Minted tags: names that are made many at a time, without a live record for each.
//!
//! A tag is a number with a proof. The number tells which [`Mint`] it belongs to, and which line of it. The proof is a code that only
//! who has the key of the server can make, so a tag needs no record to be known. The 100 bits are the first 51 of the code, the
//! number of the mint (32), and the line (17). The code is in front, because the index of interactions has the beginnings of tags.

use std::collections::BTreeSet;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use workflow::{hex, unhex};

use super::{BASE32, Callback, CallbackId, CallbackTag};
use crate::job::Job;
use crate::moment::Entropy;
use crate::{Actor, Hops, JobId, ScanKey, Timestamp};

const NUMBER_BITS: u32 = 32;
const LINE_BITS: u32 = 17;
const CODE_BITS: u32 = 51;

/// The lines of one mint, at most.
pub const MINT_LINES: u32 = 1 << LINE_BITS;

/// The key with which a server makes and knows its tags. It is no better kept than the tags that were made one by one: who reads
/// the state folder has both.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MintKey([u8; 32]);

impl MintKey {
    pub fn random(entropy: &mut dyn Entropy) -> Self {
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes);
        Self(bytes)
    }
}

impl TryFrom<String> for MintKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = unhex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("must be 64 hexadecimal digits")
    }
}

impl From<MintKey> for String {
    fn from(key: MintKey) -> Self {
        hex(&key.0)
    }
}

impl fmt::Debug for MintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MintKey(***)")
    }
}

/// The tag of a line of a mint. Lines from [`MINT_LINES`] on have none.
pub fn mint(key: &MintKey, server: CallbackId, number: u32, line: u32) -> Option<CallbackTag> {
    if line >= MINT_LINES {
        return None;
    }
    let place = (u128::from(number) << LINE_BITS) | u128::from(line);
    let bits = (code(key, server, number, line) << (NUMBER_BITS + LINE_BITS)) | place;
    let digit = |at: usize| BASE32[(bits >> (95 - 5 * at)) as usize % 32];
    Some(CallbackTag(std::array::from_fn(digit)))
}

/// The number and the line of a tag that was minted with this key.
pub fn read(key: &MintKey, server: CallbackId, tag: CallbackTag) -> Option<(u32, u32)> {
    let value = |digit: u8| match digit {
        b'a'..=b'z' => digit - b'a',
        _ => digit - b'2' + 26,
    };
    let bits = tag.0.iter();
    let bits = bits.fold(0, |bits, digit| (bits << 5) | u128::from(value(*digit)));
    let line = bits as u32 % MINT_LINES;
    let number = (bits >> LINE_BITS) as u32;
    let is_ours = bits >> (NUMBER_BITS + LINE_BITS) == code(key, server, number, line);
    is_ours.then_some((number, line))
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn code(key: &MintKey, server: CallbackId, number: u32, line: u32) -> u128 {
    let mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes any key");
    let mac = mac.chain_update(server.0);
    let mac = mac.chain_update(number.to_be_bytes());
    let code = mac.chain_update(line.to_be_bytes()).finalize().into_bytes();
    let bytes = code.iter().take(8);
    let bits = bytes.fold(0, |bits, byte| (bits << 8) | u128::from(*byte));
    bits >> (u64::BITS - CODE_BITS)
}

/// What a server has minted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minted {
    /// The number of the next mint.
    pub next: u32,
    pub live: LiveMints,
}

/// Which minted tags are answered. A tag with a right code was minted, so this does not change with each mint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveMints {
    pub key: MintKey,
    /// Mints from this number on are kept.
    pub oldest: u32,
    /// These are kept for ever.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub never: BTreeSet<u32>,
}

impl LiveMints {
    /// The number and the line of a tag that is answered.
    pub fn read(&self, server: CallbackId, tag: CallbackTag) -> Option<(u32, u32)> {
        let found = read(&self.key, server, tag);
        found.filter(|(number, _)| *number >= self.oldest || self.never.contains(number))
    }
}

impl Minted {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let key = MintKey::random(entropy);
        let (oldest, never) = (0, BTreeSet::new());
        Self {
            next: 0,
            live: LiveMints { key, oldest, never },
        }
    }

    /// The mints that have a record.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        let live = &self.live;
        let before = live.never.range(..live.oldest);
        before.copied().chain(live.oldest..self.next)
    }
}

impl Callback {
    /// The number and the line of a minted tag that is answered.
    pub fn minted_tag(&self, tag: CallbackTag) -> Option<(u32, u32)> {
        self.minted.as_ref()?.live.read(self.id, tag)
    }
}

/// Tags that were made at once. The record is settled: however many there are, a start reads none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mint {
    pub server: CallbackId,
    pub number: u32,
    /// How many tags it has.
    pub lines: u32,
    pub created_at: Timestamp,
    pub created_by: Actor,
    /// When the tags are not answered any more, by the wall clock. None is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Where it was planted, or what for. It may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The job that has made it. The record stays when the job is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<PlantedBy>,
    /// The payloads that were rendered. Then each line has one, and a target: an object beside the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The job that has made a name. What its interactions start counts as caused by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedBy {
    pub id: JobId,
    pub scan: ScanKey,
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    pub hops: Hops,
}

impl From<&Job> for PlantedBy {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id,
            scan: job.scan_key(),
            hops: job.hops,
        }
    }
}

impl Mint {
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::moment::SeededEntropy;

    fn key(seed: u64) -> (MintKey, CallbackId) {
        let mut entropy = SeededEntropy::new(seed);
        let key = MintKey::random(&mut entropy);
        (key, CallbackId::random(&mut entropy))
    }

    proptest! {
        #[test]
        fn a_minted_tag_is_read(seed: u64, number: u32, line in 0..MINT_LINES) {
            let (key, server) = key(seed);
            let tag = mint(&key, server, number, line).unwrap();
            prop_assert_eq!(read(&key, server, tag), Some((number, line)));
            let parsed: CallbackTag = tag.as_str().parse().unwrap();
            prop_assert_eq!(parsed, tag);
            prop_assert_eq!(mint(&key, server, number, MINT_LINES + line), None);
        }

        #[test]
        fn another_tag_key_or_server_is_not(
            seed: u64, number: u32, line in 0..MINT_LINES, at in 0..20_usize, by in 1..32_u8,
        ) {
            let (key, server) = key(seed);
            let mut tag = mint(&key, server, number, line).unwrap();
            let (other, stranger) = self::key(seed.wrapping_add(1));
            prop_assert_eq!(read(&other, server, tag), None);
            prop_assert_eq!(read(&key, stranger, tag), None);
            let digit = BASE32.iter().position(|it| *it == tag.0[at]).unwrap();
            tag.0[at] = BASE32[(digit + usize::from(by)) % 32];
            prop_assert_eq!(read(&key, server, tag), None);
        }
    }

    #[test]
    fn tags_stay_the_same_and_the_key_is_not_shown() {
        let (key, server) = (MintKey([7; 32]), "abcdefghijklmnop".parse().unwrap());
        let tags = [(0, 0), (0, 1), (4_000_000_000, MINT_LINES - 1)];
        let tags = tags.map(|(number, line)| mint(&key, server, number, line).unwrap());
        let expected = [
            "d7olg7dx4jqaaaaaaaaa",
            "neswjwtbujqaaaaaaaab",
            "qss4r26lkn642ziad777",
        ];
        assert_eq!(tags.map(|tag| tag.to_string()), expected);
        assert_eq!(format!("{key:?}"), "MintKey(***)");
        let text = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<MintKey>(&text).unwrap(), key);
        assert!(serde_json::from_str::<MintKey>("\"00\"").is_err());
    }
}
