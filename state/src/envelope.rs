//! The envelope around the body of every JSON record: kind, id, whether the record is live, and a checksum.
//!
//! Records are pretty-printed, so that people can read them. Kind and id must match the path of the record. This
//! detects an intact file in the wrong place.

use serde::{Deserialize, Serialize};
use store::{Key, Seq};
use thiserror::Error;
use workflow::sha256;

use crate::pretty::{compact, pretty};
use crate::record::{self, Kind, Record, Typed};

pub(crate) const VERSION: u32 = 7;

/// The envelope fields that a commit determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// How often the record has been written, this time included.
    pub(crate) revision: u64,
    pub(crate) sequence: Seq,
    /// The clock behind the record's expiry times, if it has any.
    pub(crate) clock: Option<u64>,
}

#[derive(Serialize)]
struct Envelope<'a, B> {
    kind: Kind,
    id: &'a str,
    version: u32,
    revision: u64,
    sequence: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<u64>,
    live: bool,
    checksum: &'static str,
    body: &'a B,
}

/// Enough for most records, so that the buffer rarely grows.
const RECORD_BYTES: usize = 2 * 1024;

const EMPTY_CHECKSUM: &[u8] = br#""checksum":"""#;

/// The fields of an envelope that are read before the body.
#[derive(Deserialize)]
struct Head {
    version: u32,
    checksum: String,
    kind: Kind,
    id: String,
    live: bool,
    revision: u64,
    sequence: Seq,
    #[serde(default)]
    clock: Option<u64>,
}

/// A record with a correct checksum.
pub(crate) struct Sealed<'a> {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) live: bool,
    pub(crate) stamp: Stamp,
    bytes: &'a [u8],
}

/// Why a record cannot be read.
#[derive(Debug, Error)]
pub(crate) enum EnvelopeError {
    #[error("it is not a record: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it is a {found:?}, not a {wanted:?}")]
    Kind { found: Kind, wanted: Kind },
    #[error("its version {0} is newer than this program knows; use a newer one")]
    Newer(u32),
    #[error("its checksum does not fit its content")]
    Checksum,
    #[error("it is the record that belongs at {0}")]
    Place(Key),
}

pub(crate) fn seal<R: Record>(record: &R, stamp: Stamp) -> Result<Vec<u8>, serde_json::Error> {
    let Stamp {
        revision,
        sequence,
        clock,
    } = stamp;
    let envelope = Envelope {
        kind: R::KIND,
        id: &record.id(),
        version: VERSION,
        revision,
        sequence,
        clock,
        live: record.is_live(),
        checksum: "",
        body: record,
    };
    let mut compact = Vec::with_capacity(RECORD_BYTES);
    serde_json::to_writer(&mut compact, &envelope)?;
    let checksum = checksum(&compact);
    // Quotes in an id are escaped, so the first match is the field of the envelope.
    let empty = compact
        .windows(EMPTY_CHECKSUM.len())
        .position(|window| window == EMPTY_CHECKSUM);
    if let Some(at) = empty {
        let at = at + EMPTY_CHECKSUM.len() - 1;
        compact.splice(at..at, checksum.bytes());
    }
    Ok(pretty(&compact))
}

/// Checks the checksum and version of a record. Only white space may differ from the written record. The checksum
/// covers the text of the file, so the record stays valid when its Rust type changes. The checksum is checked before
/// the version: a newer version stops the program, but a damaged version number must not.
pub(crate) fn read(bytes: &[u8]) -> Result<Sealed<'_>, EnvelopeError> {
    /// The fields that every version has.
    #[derive(Deserialize)]
    struct Any {
        version: u32,
        checksum: String,
    }
    let head: Result<Head, _> = serde_json::from_slice(bytes);
    let Any {
        version,
        checksum: written,
    } = match &head {
        Ok(head) => Any {
            version: head.version,
            checksum: head.checksum.clone(),
        },
        Err(_) => serde_json::from_slice(bytes)?,
    };
    if checksum(&compact(bytes, "checksum")) != written {
        return Err(EnvelopeError::Checksum);
    }
    if version > VERSION {
        return Err(EnvelopeError::Newer(version));
    }
    let head = head?;
    Ok(Sealed {
        kind: head.kind,
        id: head.id,
        live: head.live,
        stamp: Stamp {
            revision: head.revision,
            sequence: head.sequence,
            clock: head.clock,
        },
        bytes,
    })
}

/// Reads a record and checks its kind.
pub(crate) fn open<R: Record>(bytes: &[u8]) -> Result<R, EnvelopeError> {
    let record = read(bytes)?;
    if record.kind == R::KIND {
        Ok(record::body(record.bytes)?)
    } else {
        Err(EnvelopeError::Kind {
            found: record.kind,
            wanted: R::KIND,
        })
    }
}

/// Reads a record and checks that it belongs at `key`.
pub(crate) fn open_at<R: Record>(key: &Key, bytes: &[u8]) -> Result<R, EnvelopeError> {
    let record: R = open(bytes)?;
    let place = record.place();
    if place == *key {
        Ok(record)
    } else {
        Err(EnvelopeError::Place(place))
    }
}

impl Sealed<'_> {
    pub(crate) fn typed(self) -> Result<Typed, EnvelopeError> {
        Ok(Typed::parse(self.kind, self.bytes)?)
    }
}

/// 128 bits of SHA-256 over an envelope without white space and with an empty checksum: enough to detect accidents, and
/// short.
fn checksum(compact: &[u8]) -> String {
    let mut digits = sha256(compact);
    digits.truncate(32);
    digits
}

/// The same record as a program of another version would write it.
#[cfg(test)]
pub(crate) fn resealed(bytes: &[u8], version: u32) -> Vec<u8> {
    let text = String::from_utf8(compact(bytes, "checksum")).unwrap();
    let (ours, theirs) = (
        format!("\"version\":{VERSION}"),
        format!("\"version\":{version}"),
    );
    let text = text.replacen(&ours, &theirs, 1);
    let sum = format!("\"checksum\":\"{}\"", checksum(text.as_bytes()));
    pretty(text.replacen("\"checksum\":\"\"", &sum, 1).as_bytes())
}

#[cfg(test)]
mod tests {
    use model::Token;

    use super::*;

    const STAMP: Stamp = Stamp {
        revision: 3,
        sequence: Seq(41),
        clock: Some(7),
    };

    #[derive(Serialize, Deserialize)]
    struct Old {
        name: String,
        forgotten: u32,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct New {
        name: String,
        #[serde(default)]
        added: Option<u32>,
    }

    macro_rules! jobs {
        ($($body:ty),*) => {$(
            impl Record for $body {
                const KIND: Kind = Kind::Job;

                fn place(&self) -> Key {
                    Key::new("job.json").unwrap()
                }

                fn id(&self) -> String {
                    "1".to_owned()
                }

                fn is_live(&self) -> bool {
                    true
                }
            }
        )*};
    }

    jobs!(Vec<String>, Old, New);

    #[test]
    fn a_record_reads_back_and_a_changed_record_is_refused() {
        let bytes = seal(&vec!["a".to_owned(), "b".to_owned()], STAMP).unwrap();
        assert_eq!(open::<Vec<String>>(&bytes).unwrap(), ["a", "b"]);
        assert_eq!(read(&bytes).unwrap().stamp, STAMP);
        let changed = String::from_utf8(bytes.clone())
            .unwrap()
            .replace("\"b\"", "\"c\"");
        assert!(matches!(
            open::<Vec<String>>(changed.as_bytes()),
            Err(EnvelopeError::Checksum)
        ));
        assert!(matches!(
            open::<Token>(&bytes),
            Err(EnvelopeError::Kind { .. })
        ));
    }

    #[test]
    fn a_newer_version_is_distinguished_from_a_damaged_version() {
        let bytes = seal(&Vec::<String>::new(), STAMP).unwrap();
        let next = VERSION + 1;
        let newer = resealed(&bytes, next);
        let text = String::from_utf8(bytes).unwrap();
        let ours = format!("\"version\": {VERSION}");
        let damaged = text.replace(&ours, &format!("\"version\": {next}"));
        let read = |bytes: &[u8]| read(bytes).map(|record| record.kind);
        assert!(matches!(
            read(damaged.as_bytes()),
            Err(EnvelopeError::Checksum)
        ));
        assert!(matches!(read(&newer), Err(EnvelopeError::Newer(found)) if found == next));
    }

    #[test]
    fn a_record_stays_valid_only_if_its_type_or_white_space_changes() {
        let old = Old {
            name: "a".to_owned(),
            forgotten: 1,
        };
        let text = String::from_utf8(seal(&old, STAMP).unwrap()).unwrap();
        let compact: String = text.split_whitespace().collect();
        for same in [&text, &compact] {
            let new = New {
                name: "a".to_owned(),
                added: None,
            };
            assert_eq!(open::<New>(same.as_bytes()).unwrap(), new, "{same}");
        }
        for (from, to) in [
            ("true", "false"),
            (r#""id":"1""#, r#""id":"2""#),
            (r#""revision":3"#, r#""revision":4"#),
            (r#""sequence":41"#, r#""sequence":40"#),
            (r#""forgotten":1"#, r#""forgotten":2"#),
            (r#""name":"a","forgotten":1"#, r#""forgotten":1,"name":"a""#),
        ] {
            let changed = compact.replace(from, to);
            let read = open::<New>(changed.as_bytes());
            assert!(matches!(read, Err(EnvelopeError::Checksum)), "{changed}");
        }
        assert!(matches!(
            open::<New>(b"{}"),
            Err(EnvelopeError::Malformed(_))
        ));
    }
}
