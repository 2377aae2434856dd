//! One batch as bytes in the journal. A record holds the full new content of each change, so that applying it twice
//! is harmless. Its checksum includes the salt of the segment, so bytes of an earlier use of the file are never
//! valid.
//!
//! Layout, little endian: checksum u32, payload length u32, operation count u32, sequence number u64, epoch u64,
//! payload. An operation: tag u8, key length u16, key; a put adds live u8, length u32, bytes; an append adds offset
//! u64, length u32, bytes; an adoption adds size u64, SHA-256, name length u16, name.

use bytes::Bytes;

use crate::batch::{Append, Batch, Epoch, Put, Seq};
use crate::key::Key;
use crate::limits::RECORD_PAYLOAD_BYTES;
use crate::staged::{Object, Staged, StagedName};

pub(crate) const HEADER_BYTES: usize = 28;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const APPEND: u8 = 3;
const ADOPT: u8 = 4;

/// A batch with its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) seq: Seq,
    pub(crate) batch: Batch,
}

/// The frame of a record with a correct checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) seq: Seq,
    pub(crate) epoch: Epoch,
    operations: u32,
    payload: usize,
}

pub(crate) fn encode(salt: u64, seq: Seq, batch: &Batch) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.reserve(batch.bytes() + batch.len() * 16);
    for (key, put) in &batch.puts {
        push_key(&mut bytes, PUT, key);
        bytes.push(u8::from(put.live));
        push_content(&mut bytes, &put.bytes);
    }
    for key in &batch.deletes {
        push_key(&mut bytes, DELETE, key);
    }
    for append in &batch.appends {
        push_key(&mut bytes, APPEND, &append.ledger);
        bytes.extend(append.at.to_le_bytes());
        push_content(&mut bytes, &append.bytes);
    }
    for (key, staged) in &batch.adopts {
        push_key(&mut bytes, ADOPT, key);
        bytes.extend(staged.size().to_le_bytes());
        bytes.extend(staged.sha256());
        push_text(&mut bytes, staged.name().as_str());
    }
    let payload = (bytes.len() - HEADER_BYTES) as u32;
    bytes[4..8].copy_from_slice(&payload.to_le_bytes());
    bytes[8..12].copy_from_slice(&(batch.len() as u32).to_le_bytes());
    bytes[12..20].copy_from_slice(&seq.0.to_le_bytes());
    bytes[20..28].copy_from_slice(&batch.epoch.0.to_le_bytes());
    let sum = checksum(salt, &bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The frame at the start of `bytes`, if `wanted` accepts its numbers and the checksum is correct. `wanted` is
/// checked first: it is cheap, and a search checks every byte.
pub(crate) fn frame(salt: u64, bytes: &[u8], wanted: impl Fn(Seq, Epoch) -> bool) -> Option<Frame> {
    let mut fields = Cursor { rest: bytes };
    let sum = fields.u32()?;
    let payload = fields.u32()? as usize;
    let operations = fields.u32()?;
    let seq = Seq(fields.u64()?);
    let epoch = Epoch(fields.u64()?);
    if payload > RECORD_PAYLOAD_BYTES || !wanted(seq, epoch) {
        return None;
    }
    let summed = bytes.get(4..HEADER_BYTES + payload)?;
    (checksum(salt, summed) == sum).then_some(Frame {
        seq,
        epoch,
        operations,
        payload,
    })
}

impl Frame {
    pub(crate) fn length(&self) -> usize {
        HEADER_BYTES + self.payload
    }

    /// True for the mark of a full segment. No batch is empty.
    pub(crate) fn is_mark(&self) -> bool {
        self.operations == 0
    }

    /// Decodes the record of this frame at the start of `rest`, which is a part of `whole`. `None` if the payload is
    /// invalid despite its correct checksum. Contents are not copied and keep `whole` in memory.
    pub(crate) fn decode(&self, whole: &Bytes, rest: &[u8]) -> Option<Record> {
        let mut payload = Cursor {
            rest: rest.get(HEADER_BYTES..self.length())?,
        };
        let mut batch = Batch::new(self.epoch);
        for _ in 0..self.operations {
            let tag = payload.u8()?;
            let key = payload.key()?;
            match tag {
                PUT => {
                    let live = match payload.u8()? {
                        0 => false,
                        1 => true,
                        _ => return None,
                    };
                    batch.puts.insert(
                        key,
                        Put {
                            live,
                            bytes: whole.slice_ref(payload.content()?),
                        },
                    );
                }
                DELETE => {
                    batch.deletes.insert(key);
                }
                APPEND => batch.appends.push(Append {
                    ledger: key,
                    at: payload.u64()?,
                    bytes: whole.slice_ref(payload.content()?),
                }),
                ADOPT => {
                    let (size, sha256) = (payload.u64()?, payload.array()?);
                    let name = StagedName::parse(payload.text()?)?;
                    let object = Object { sha256, size };
                    batch.adopts.insert(key, Staged::recorded(name, object));
                }
                _ => return None,
            }
        }
        payload.rest.is_empty().then_some(Record {
            seq: self.seq,
            batch,
        })
    }
}

fn push_key(bytes: &mut Vec<u8>, tag: u8, key: &Key) {
    bytes.push(tag);
    push_text(bytes, key.as_str());
}

/// Keys, names of objects and batches are limited, so all lengths fit their fields.
pub(crate) fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
}

pub(crate) fn push_content(bytes: &mut Vec<u8>, content: &[u8]) {
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
}

fn checksum(salt: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Reads fields from the front of a slice. The live index uses it too.
pub(crate) struct Cursor<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn key(&mut self) -> Option<Key> {
        Key::new(self.text()?).ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u16()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }

    pub(crate) fn content(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::world::{adopt, append, delete, live, ops, put};

    fn sample() -> Batch {
        let name = StagedName::parse("object-0123456789abcdef0123456789abcdef").unwrap();
        let (sha256, size) = ([5; 32], 7);
        let object = Staged::recorded(name, Object { sha256, size });
        let operations = [
            live("a.json", 1),
            put("b", ""),
            delete("c/d"),
            append("e.jsonl", u64::MAX, "x\n"),
            adopt("f.zip", object),
        ];
        ops(Epoch(3), operations)
    }

    #[test]
    fn a_record_decodes_to_the_encoded_batch() {
        let bytes = Bytes::from(encode(9, Seq(5), &sample()));
        let frame = frame(9, &bytes, |_, _| true).unwrap();
        assert_eq!(frame.length(), bytes.len());
        assert_eq!(
            frame.decode(&bytes, &bytes),
            Some(Record {
                seq: Seq(5),
                batch: sample()
            })
        );
    }

    #[test]
    fn a_record_with_wrong_lengths_does_not_panic() {
        let good = encode(9, Seq(5), &sample());
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] = bytes[at].wrapping_add(1);
            let sum = checksum(9, &bytes[4..]);
            bytes[..4].copy_from_slice(&sum.to_le_bytes());
            if let Some(frame) = frame(9, &bytes, |_, _| true) {
                let bytes = Bytes::from(bytes);
                let _ = frame.decode(&bytes, &bytes);
            }
        }
    }
}
