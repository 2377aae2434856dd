//! One file of the journal: a header block, then records back to back, then old content. A full segment ends with a
//! mark: an empty record with the number of the first record of the next segment. Reading distinguishes an unfinished
//! record at the end, which was never acknowledged, from damage before acknowledged records.

use bytes::Bytes;

use crate::batch::{Batch, Epoch, Seq};
use crate::control::StoreId;
use crate::record::{self, Cursor, Frame, Record};

/// Records begin here. The header has its own block, so that no append rewrites it.
pub(crate) const DATA_START: usize = 4096;

const MAGIC: [u8; 8] = *b"EVSJRNL\n";
/// Format of a header with the length of its segment; older headers lack it.
const FORMAT: u64 = 2;
const FORMAT_WITHOUT_LENGTH: u64 = 1;
const SUFFIX: &str = ".jnl";

/// Limit for sequence numbers in a search behind damage. One segment holds fewer records.
pub(crate) const SEARCH_AHEAD: u64 = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) store: StoreId,
    pub(crate) epoch: Epoch,
    pub(crate) first: Seq,
    pub(crate) salt: u64,
    /// Size of the file, which never changes; 0 if an older program wrote the header.
    pub(crate) length: u64,
}

/// The extent of the records of a segment, and whether they end as they should.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The number of the next record.
    pub(crate) next: Seq,
    pub(crate) end: usize,
    /// True if a mark announces another segment.
    pub(crate) is_followed: bool,
    /// Set if the records end too early.
    pub(crate) damage: Option<Damage>,
}

/// Damage that makes an acknowledged record unreadable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) what: String,
}

impl Damage {
    pub(crate) fn new(offset: usize, what: impl Into<String>) -> Self {
        Self {
            offset: offset as u64,
            what: what.into(),
        }
    }
}

pub(crate) fn file_name(first: Seq) -> String {
    format!("{first:020}{SUFFIX}")
}

pub(crate) fn first_of_file_name(name: &str) -> Option<Seq> {
    name.strip_suffix(SUFFIX)?
        .parse()
        .ok()
        .map(Seq)
        .filter(|first| file_name(*first) == name)
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DATA_START);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.store.0);
        bytes.extend(self.epoch.0.to_le_bytes());
        bytes.extend(self.first.0.to_le_bytes());
        bytes.extend(self.salt.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.resize(DATA_START, 0);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let damage = |what: &str| Damage::new(0, what);
        let mut fields = Cursor { rest: bytes };
        let mut read = || {
            let magic: [u8; 8] = fields.array()?;
            let format = fields.u64()?;
            let store = StoreId(fields.array()?);
            let header = Self {
                store,
                epoch: Epoch(fields.u64()?),
                first: Seq(fields.u64()?),
                salt: fields.u64()?,
                length: if format == FORMAT_WITHOUT_LENGTH {
                    0
                } else {
                    fields.u64()?
                },
            };
            let summed = bytes.len() - fields.rest.len();
            let is_right = crc32fast::hash(&bytes[..summed]) == fields.u32()?;
            Some((magic == MAGIC && is_right, format, header))
        };
        let (is_right, format, header) =
            read().ok_or_else(|| damage("the segment is shorter than its header"))?;
        if !is_right {
            return Err(damage("the header of the segment is not readable"));
        }
        if ![FORMAT, FORMAT_WITHOUT_LENGTH].contains(&format) {
            return Err(damage("the segment has an unknown format"));
        }
        Ok(header)
    }

    /// Damage if the file is shorter than its header says. The length was durable before the segment got its name.
    pub(crate) fn shortened(&self, bytes: usize) -> Option<Damage> {
        let what = || {
            format!(
                "the segment ends here, but it was created with {} bytes",
                self.length
            )
        };
        ((bytes as u64) < self.length).then(|| Damage::new(bytes, what()))
    }
}

/// Passes the records of a segment to `take`, up to the first invalid one. A valid record behind that one shows
/// damage, because the journal is written in order, one record at a time.
pub(crate) fn read(header: &Header, bytes: &Bytes, take: &mut dyn FnMut(Record)) -> Contents {
    let mut contents = Contents {
        next: header.first,
        end: DATA_START,
        is_followed: false,
        damage: None,
    };
    loop {
        let expected = contents.next;
        let rest = bytes.get(contents.end..).unwrap_or_default();
        let wanted = |seq, epoch| seq == expected && epoch == header.epoch;
        let Some(frame) = record::frame(header.salt, rest, wanted) else {
            break;
        };
        if frame.is_mark() {
            contents.is_followed = true;
            break;
        }
        let Some(record) = frame.decode(bytes, rest) else {
            let what = format!("record {expected} is intact but cannot be decoded");
            contents.damage = Some(Damage::new(contents.end, what));
            return contents;
        };
        take(record);
        contents.end += frame.length();
        contents.next = expected.next();
    }
    let expected = contents.next;
    contents.damage = search(header, bytes, contents.end, expected).map(|(_, later)| {
        let behind = if later.is_mark() {
            "the mark of a full segment".to_owned()
        } else {
            format!("record {}", later.seq)
        };
        let what = format!("record {expected} is unreadable, but {behind} after it is readable");
        Damage::new(contents.end, what)
    });
    contents
}

/// Announces a next segment that begins with the record `next`.
pub(crate) fn mark(salt: u64, epoch: Epoch, next: Seq) -> Vec<u8> {
    record::encode(salt, next, &Batch::new(epoch))
}

/// The last valid record behind the damage.
pub(crate) fn last_cut_off(header: &Header, bytes: &[u8], contents: &Contents) -> Option<Seq> {
    let mut last = None;
    let mut from = contents.end;
    while let Some((at, frame)) = search(header, bytes, from, contents.next) {
        // A mark has the number of the first record of the next segment.
        let seq = frame.seq.0.saturating_sub(u64::from(frame.is_mark()));
        last = last.max(Some(Seq(seq)));
        from = at;
    }
    last
}

/// The first valid record or mark behind `from`, with its offset.
fn search(header: &Header, bytes: &[u8], from: usize, expected: Seq) -> Option<(usize, Frame)> {
    let plausible = expected.0..expected.0.saturating_add(SEARCH_AHEAD);
    let wanted = |seq: Seq, epoch| epoch == header.epoch && plausible.contains(&seq.0);
    let epoch = header.epoch.0.to_le_bytes();
    let last = bytes.len().checked_sub(record::HEADER_BYTES)?;
    (from + 1..=last.min(reserved(bytes)))
        // The epoch is at byte 20 of a record. This comparison rules out almost every offset.
        .filter(|at| bytes[at + 20..at + 28] == epoch)
        .find_map(|at| record::frame(header.salt, &bytes[at..], wanted).map(|frame| (at, frame)))
}

/// Start of the zeros at the end of a segment, rounded to blocks. A new segment is filled with zeros, and no record
/// begins in them.
fn reserved(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while let Some(block) = bytes[..end].last_chunk::<DATA_START>()
        && *block == [0; DATA_START]
    {
        end -= DATA_START;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::world::{ops, put};

    const HEADER: Header = Header {
        store: StoreId([1; 16]),
        epoch: Epoch(2),
        first: Seq(10),
        salt: 77,
        length: 6000,
    };
    /// Bytes of a header with their checksum.
    const WRITTEN: usize = 8 + 8 + 16 + 8 + 8 + 8 + 8 + 4;

    fn batch(number: u64) -> Batch {
        ops(HEADER.epoch, [put("a/b", &format!("content of {number}"))])
    }

    /// A segment with `count` records, and where each begins.
    fn segment(count: u64) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = HEADER.encode();
        let mut starts = Vec::new();
        for number in 0..count {
            starts.push(bytes.len());
            bytes.extend(record::encode(
                HEADER.salt,
                Seq(HEADER.first.0 + number),
                &batch(number),
            ));
        }
        starts.push(bytes.len());
        bytes.resize(bytes.len() + 500, 0);
        (bytes, starts)
    }

    fn contents(header: &Header, bytes: &[u8]) -> (Vec<Record>, Contents) {
        let mut records = Vec::new();
        let bytes = Bytes::copy_from_slice(bytes);
        let contents = read(header, &bytes, &mut |record| records.push(record));
        let next = records.last().map_or(header.first, |last| last.seq.next());
        assert_eq!(contents.next, next);
        (records, contents)
    }

    fn intact(header: &Header, bytes: &[u8]) -> Result<Vec<Record>, Damage> {
        let (records, contents) = contents(header, bytes);
        match contents.damage {
            None => Ok(records),
            Some(damage) => Err(damage),
        }
    }

    #[test]
    fn file_names_sort_like_numbers_and_are_parsed_back() {
        assert_eq!(first_of_file_name(&file_name(Seq(12))), Some(Seq(12)));
        assert!(
            file_name(Seq(9)) < file_name(Seq(10)) && file_name(Seq(10)) < file_name(Seq(u64::MAX))
        );
        for name in [
            "12.jnl",
            "CHECKPOINT",
            "spare-1",
            "00000000000000000012.jnl+new",
        ] {
            assert_eq!(first_of_file_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_header_without_a_length_is_read_and_reports_no_damage() {
        let mut bytes = HEADER.encode();
        bytes[8..16].copy_from_slice(&FORMAT_WITHOUT_LENGTH.to_le_bytes());
        let summed = WRITTEN - 8 - 4;
        let sum = crc32fast::hash(&bytes[..summed]);
        bytes[summed..summed + 4].copy_from_slice(&sum.to_le_bytes());
        let header = Header::decode(&bytes).unwrap();
        let length = 0;
        assert_eq!(header, Header { length, ..HEADER });
        assert_eq!(header.shortened(DATA_START), None);
        assert_eq!(HEADER.shortened(6000), None);
        assert_eq!(HEADER.shortened(5999).unwrap().offset, 5999);
    }

    #[test]
    fn the_mark_of_a_full_segment_is_not_a_record() {
        let (mut bytes, starts) = segment(3);
        let end = starts[3];
        let mark = mark(HEADER.salt, HEADER.epoch, Seq(13));
        bytes[end..end + mark.len()].copy_from_slice(&mark);
        let (records, whole) = contents(&HEADER, &bytes);
        assert_eq!((records.len(), whole.end), (3, end));
        assert!(whole.is_followed && whole.damage.is_none());
        for at in end..end + mark.len() {
            let mut torn = bytes.clone();
            torn[at] ^= 4;
            let (records, torn) = contents(&HEADER, &torn);
            assert_eq!(records.len(), 3);
            assert!(!torn.is_followed && torn.damage.is_none());
        }
        // Before a mark, an unfinished record is impossible.
        for at in starts[2]..end {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            let (records, found) = contents(&HEADER, &changed);
            assert_eq!(records.len(), 2);
            assert!(found.damage.is_some());
            assert_eq!(last_cut_off(&HEADER, &changed, &found), Some(Seq(12)));
        }
    }

    #[test]
    fn a_last_record_torn_at_any_byte_is_dropped() {
        let (bytes, starts) = segment(3);
        let (last, end) = (starts[2], starts[3]);
        for at in last..end {
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            for torn in [&zeroed[..], &bytes[..at]] {
                let (records, contents) = contents(&HEADER, torn);
                assert_eq!(contents.damage, None, "torn at {at}");
                // The last bytes of the record may be zeros themselves; then nothing was torn.
                let whole = torn.len() >= end && torn[..end] == bytes[..end];
                assert_eq!(records.len(), if whole { 3 } else { 2 }, "torn at {at}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_never_gives_a_different_record() {
        let (bytes, starts) = segment(3);
        let whole = intact(&HEADER, &bytes).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let found = Header::decode(&changed).and_then(|header| intact(&header, &changed));
                match found {
                    // Damage before later records.
                    Err(_) => assert!(at < starts[2], "bit {bit} of byte {at}"),
                    // Damage in the last record looks like an unfinished write.
                    Ok(records) if (starts[2]..starts[3]).contains(&at) => {
                        assert_eq!(records, whole[..2], "bit {bit} of byte {at}");
                    }
                    Ok(records) => assert_eq!(records, whole, "bit {bit} of byte {at}"),
                }
            }
        }
    }

    #[test]
    fn records_of_an_earlier_use_of_the_file_are_ignored() {
        let (old, starts) = segment(3);
        let header = Header {
            epoch: Epoch(2),
            first: Seq(12),
            salt: 78,
            ..HEADER
        };
        let mut bytes = header.encode();
        bytes.extend(&old[DATA_START..]);
        let (records, _) = contents(&header, &bytes);
        assert!(records.is_empty());
        // A new record overwrites the first old record; the others remain after it.
        let fresh = record::encode(header.salt, Seq(12), &batch(0));
        bytes[DATA_START..DATA_START + fresh.len()].copy_from_slice(&fresh);
        let (records, contents) = contents(&header, &bytes);
        assert_eq!((records.len(), contents.end), (1, starts[1]));
    }
}
