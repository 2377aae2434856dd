//! Reads the directory of a zip, without unpacking the zip. The bytes are not trusted, so every number in them is
//! checked.

use crate::limits::{ARTIFACT_ENTRIES, DIRECTORY_BYTES, DIRECTORY_PIECE_BYTES};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    pub name: String,
    /// The length when unpacked.
    pub size: u64,
    /// The length in the zip.
    pub packed: u64,
    /// The checksum of the content.
    pub crc32: u32,
}

/// Why the files of a zip cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZipProblem {
    #[error("it is no zip, or its directory is damaged")]
    Damaged,
    #[error("it has {0} files, and only {ARTIFACT_ENTRIES} can be listed")]
    TooMany(u64),
}

/// Where the directory is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    entries: u64,
    pub(crate) begin: u64,
    pub(crate) bytes: usize,
}

/// The end record, the longest comment after it, and the locator of a large zip before it.
pub(crate) const TAIL_BYTES: usize = END_BYTES + u16::MAX as usize + LOCATOR_BYTES;

const END: u32 = 0x0605_4b50;
const END_BYTES: usize = 22;
const LOCATOR: u32 = 0x0706_4b50;
const LOCATOR_BYTES: usize = 20;
const LARGE_END: u32 = 0x0606_4b50;
/// Bytes that are read of the record to which a locator points.
pub(crate) const LARGE_END_BYTES: usize = 56;
const ENTRY: u32 = 0x0201_4b50;
const ENTRY_BYTES: usize = 46;
/// An entry with the longest name, extra field and comment.
const MOST_ENTRY_BYTES: usize = ENTRY_BYTES + 3 * u16::MAX as usize;
/// The extra field with numbers over 32 bits.
const LARGE_NUMBERS: u16 = 1;

/// The content of the end of a zip.
pub(crate) enum Found {
    Directory(Directory),
    /// A large zip: the record at this offset describes the directory.
    LargeEnd(u64),
}

/// Finds the directory from the last bytes of a zip, at most [`TAIL_BYTES`].
pub(crate) fn find(tail: &[u8]) -> Result<Found, ZipProblem> {
    let last = tail
        .len()
        .checked_sub(END_BYTES)
        .ok_or(ZipProblem::Damaged)?;
    let is_end = |at: &usize| {
        let comment = u16_at(tail, at + 20).map(usize::from);
        u32_at(tail, *at) == Some(END) && comment == Some(last - at)
    };
    let at = (0..=last).rev().find(is_end).ok_or(ZipProblem::Damaged)?;
    let before = at.checked_sub(LOCATOR_BYTES);
    if let Some(locator) = before.filter(|locator| u32_at(tail, *locator) == Some(LOCATOR)) {
        let begin = u64_at(tail, locator + 8).ok_or(ZipProblem::Damaged)?;
        return Ok(Found::LargeEnd(begin));
    }
    let entries = u16_at(tail, at + 10).map(u64::from);
    let bytes = u32_at(tail, at + 12).map(u64::from);
    let begin = u32_at(tail, at + 16).map(u64::from);
    directory(entries, bytes, begin).map(Found::Directory)
}

/// The directory of a large zip, from the record that describes it.
pub(crate) fn large(record: &[u8]) -> Result<Directory, ZipProblem> {
    if u32_at(record, 0) != Some(LARGE_END) {
        return Err(ZipProblem::Damaged);
    }
    let (entries, bytes) = (u64_at(record, 32), u64_at(record, 40));
    directory(entries, bytes, u64_at(record, 48))
}

fn directory(
    entries: Option<u64>,
    bytes: Option<u64>,
    begin: Option<u64>,
) -> Result<Directory, ZipProblem> {
    let (Some(entries), Some(bytes), Some(begin)) = (entries, bytes, begin) else {
        return Err(ZipProblem::Damaged);
    };
    if entries > ARTIFACT_ENTRIES {
        return Err(ZipProblem::TooMany(entries));
    }
    let bytes = usize::try_from(bytes).map_err(|_| ZipProblem::Damaged)?;
    if bytes > DIRECTORY_BYTES {
        return Err(ZipProblem::TooMany(entries));
    }
    Ok(Directory {
        entries,
        begin,
        bytes,
    })
}

impl Directory {
    /// Calls `visit` for each file, in their order. `read` returns bytes of the zip from an offset on, up to a limit.
    pub(crate) fn each<E>(
        &self,
        read: impl Fn(u64, usize) -> Result<Vec<u8>, E>,
        mut visit: impl FnMut(ZipEntry),
    ) -> Result<Result<(), ZipProblem>, E> {
        let (mut at, mut left) = (self.begin, self.bytes);
        let mut bytes: Vec<u8> = Vec::new();
        let mut passed = 0;
        for _ in 0..self.entries {
            if bytes.len() - passed < MOST_ENTRY_BYTES && left > 0 {
                bytes.drain(..passed);
                passed = 0;
                let more = read(at, left.min(DIRECTORY_PIECE_BYTES))?;
                at += more.len() as u64;
                left = if more.is_empty() {
                    0
                } else {
                    left - more.len()
                };
                bytes.extend(more);
            }
            let rest = bytes.get(passed..).unwrap_or_default();
            let Some((entry, length)) = entry(rest).filter(|(_, length)| *length <= rest.len())
            else {
                return Ok(Err(ZipProblem::Damaged));
            };
            passed += length;
            // Folders have no content.
            if !entry.name.ends_with('/') {
                visit(entry);
            }
        }
        Ok(Ok(()))
    }
}

fn entry(bytes: &[u8]) -> Option<(ZipEntry, usize)> {
    if u32_at(bytes, 0)? != ENTRY {
        return None;
    }
    let length = |at| Some(usize::from(u16_at(bytes, at)?));
    let (name, extra, comment) = (length(28)?, length(30)?, length(32)?);
    let name_end = ENTRY_BYTES + name;
    let extra_end = name_end + extra;
    let mut large = large_numbers(bytes.get(name_end..extra_end)?);
    let mut number = |at| {
        let number = u32_at(bytes, at)?;
        match number {
            u32::MAX => large.next(),
            number => Some(u64::from(number)),
        }
    };
    // The extra field has the numbers in this order.
    let size = number(24)?;
    let packed = number(20)?;
    let entry = ZipEntry {
        name: String::from_utf8_lossy(bytes.get(ENTRY_BYTES..name_end)?).into_owned(),
        size,
        packed,
        crc32: u32_at(bytes, 16)?,
    };
    Some((entry, extra_end + comment))
}

/// The numbers in the extra field for large numbers.
fn large_numbers(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut numbers = &[][..];
    while let (Some(kind), Some(length)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let end = 4 + usize::from(length);
        if kind == LARGE_NUMBERS {
            numbers = extra.get(4..end).unwrap_or_default();
            break;
        }
        extra = extra.get(end..).unwrap_or_default();
    }
    numbers
        .chunks_exact(8)
        .filter_map(|number| Some(u64::from_le_bytes(number.try_into().ok()?)))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directory of a zip with one file, and its end. The numbers of a large file are in the extra field.
    fn zip(name: &str, numbers: Option<(u64, u64)>) -> Vec<u8> {
        let mut extra = Vec::new();
        if let Some((size, packed)) = numbers {
            // A foreign field comes first.
            extra.extend([9, 0, 1, 0, 7, 1, 0, 16, 0]);
            extra.extend(size.to_le_bytes());
            extra.extend(packed.to_le_bytes());
        }
        let short = |number: u32| if numbers.is_some() { u32::MAX } else { number };
        let mut bytes = Vec::new();
        bytes.extend(ENTRY.to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend(0xdead_beef_u32.to_le_bytes());
        bytes.extend(short(3).to_le_bytes());
        bytes.extend(short(5).to_le_bytes());
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend((extra.len() as u16).to_le_bytes());
        bytes.extend([0; 14]);
        bytes.extend(name.as_bytes());
        bytes.extend(extra);
        let length = bytes.len() as u32;
        bytes.extend(END.to_le_bytes());
        bytes.extend([0, 0, 0, 0, 1, 0, 1, 0]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend([2, 0, b'h', b'i']);
        bytes
    }

    fn listed(bytes: &[u8]) -> Result<Vec<ZipEntry>, ZipProblem> {
        match find(bytes)? {
            Found::Directory(directory) => {
                let mut entries = Vec::new();
                let read = |at: u64, limit: usize| {
                    let part = bytes
                        .get(usize::try_from(at).unwrap()..)
                        .unwrap_or_default();
                    Ok::<_, std::convert::Infallible>(part[..limit.min(part.len())].to_vec())
                };
                let Ok(read) = directory.each(read, |entry| entries.push(entry));
                read.map(|()| entries)
            }
            Found::LargeEnd(_) => Err(ZipProblem::Damaged),
        }
    }

    #[test]
    fn files_have_their_names_lengths_and_checksums() {
        let file = ZipEntry {
            name: "out/a.txt".to_owned(),
            size: 5,
            packed: 3,
            crc32: 0xdead_beef,
        };
        assert_eq!(listed(&zip("out/a.txt", None)), Ok(vec![file.clone()]));
        let large = ZipEntry {
            size: 1 << 40,
            packed: 1 << 39,
            ..file
        };
        let numbers = Some((1 << 40, 1 << 39));
        assert_eq!(listed(&zip("out/a.txt", numbers)), Ok(vec![large]));
        assert_eq!(listed(&zip("out/", None)), Ok(Vec::new()));
    }

    #[test]
    fn a_directory_of_many_pieces_is_read_whole() {
        let one = zip("out/a.txt", None);
        let end = one.len() - END_BYTES - 2;
        let many = 3 * DIRECTORY_PIECE_BYTES / end;
        let directory = Directory {
            entries: many as u64,
            begin: 0,
            bytes: many * end,
        };
        let bytes = one[..end].repeat(many);
        // A read may return less than requested.
        let read = |at: u64, limit: usize| {
            let at = at as usize;
            Ok::<_, std::convert::Infallible>(
                bytes[at..(at + limit.min(70_001)).min(bytes.len())].to_vec(),
            )
        };
        let mut count = 0;
        let Ok(read) = directory.each(read, |_| count += 1);
        assert_eq!((read, count), (Ok(()), many));
    }

    #[test]
    fn damaged_zips_are_refused_without_a_panic() {
        let whole = zip("a", Some((1, 1)));
        for end in 0..whole.len() {
            assert_eq!(listed(&whole[..end]), Err(ZipProblem::Damaged), "{end}");
        }
        // Damaged bytes never cause a panic.
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                drop(listed(&bytes));
                drop(large(&bytes));
            }
        }
        let mut many = vec![0; LARGE_END_BYTES];
        many[..4].copy_from_slice(&LARGE_END.to_le_bytes());
        many[32..40].copy_from_slice(&(ARTIFACT_ENTRIES + 1).to_le_bytes());
        assert_eq!(large(&many), Err(ZipProblem::TooMany(ARTIFACT_ENTRIES + 1)));
    }
}
