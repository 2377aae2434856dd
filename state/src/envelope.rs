//! The envelope of every JSON record: what it is, whether it is live, and a checksum, around its body.
//!
//! Records are pretty-printed, so that `cat job.json` explains itself. Kind and id must fit the path the record is
//! found at, which catches a file that is intact but in the wrong place.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Key, Seq};
use thiserror::Error;
use workflow::sha256;

use crate::pretty::pretty;

/// The format of records this program writes.
const VERSION: u32 = 1;

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Source,
    Tip,
    Workflow,
    Revision,
    ScanHead,
    Digests,
    Repeats,
    Job,
    Runner,
    Registration,
    Token,
    Vars,
    Secrets,
    Idempotency,
}

/// What a commit says of the records it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// How often the record has been written, with this time.
    pub(crate) revision: u64,
    /// The commit.
    pub(crate) sequence: Seq,
}

#[derive(Serialize, Deserialize)]
struct Envelope<B> {
    kind: Kind,
    id: String,
    version: u32,
    revision: u64,
    sequence: Seq,
    live: bool,
    checksum: String,
    body: B,
}

/// A record whose envelope fits its content.
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
    body: Value,
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

/// The bytes of a record.
pub(crate) fn seal<B: Serialize>(
    kind: Kind,
    id: &str,
    live: bool,
    stamp: Stamp,
    body: &B,
) -> Result<Vec<u8>, serde_json::Error> {
    let Stamp { revision, sequence } = stamp;
    let mut content = Envelope {
        kind,
        id: id.to_owned(),
        version: VERSION,
        revision,
        sequence,
        live,
        checksum: String::new(),
        body: serde_json::to_value(body)?,
    };
    let checksum = checksum(&mut content)?;
    let envelope = Envelope {
        kind,
        id: content.id,
        version: VERSION,
        revision,
        sequence,
        live,
        checksum,
        body,
    };
    pretty(&envelope)
}

/// A record, once its checksum and its version fit. White space and the order of members may change and values may
/// not. The checksum is over what stands in the file, so a record outlives changes of the type it is read into. A
/// newer version counts only with the right checksum: it is a reason not to go on, and a damaged number is none.
pub(crate) fn read(bytes: &[u8]) -> Result<Record, EnvelopeError> {
    let mut envelope: Envelope<Value> = serde_json::from_slice(bytes)?;
    let stated = std::mem::take(&mut envelope.checksum);
    if checksum(&mut envelope)? != stated {
        return Err(EnvelopeError::Checksum);
    }
    if envelope.version > VERSION {
        return Err(EnvelopeError::Newer(envelope.version));
    }
    Ok(Record {
        kind: envelope.kind,
        stamp: Stamp {
            revision: envelope.revision,
            sequence: envelope.sequence,
        },
        body: envelope.body,
    })
}

/// The body of a record that must be of a kind.
pub(crate) fn open<B: DeserializeOwned>(wanted: Kind, bytes: &[u8]) -> Result<B, EnvelopeError> {
    let record = read(bytes)?;
    if record.kind == wanted {
        record.body()
    } else {
        Err(EnvelopeError::Kind {
            found: record.kind,
            wanted,
        })
    }
}

impl Record {
    /// What the record is about, as the type that belongs to its kind.
    pub(crate) fn body<B: DeserializeOwned>(self) -> Result<B, EnvelopeError> {
        Ok(serde_json::from_value(self.body)?)
    }
}

/// 128 bits of SHA-256 over an envelope with an empty checksum, compact and with members in order: enough against
/// accidents, short enough to read.
fn checksum(content: &mut Envelope<Value>) -> Result<String, serde_json::Error> {
    content.body.sort_all_objects();
    let mut digits = sha256(&serde_json::to_vec(content)?);
    digits.truncate(32);
    Ok(digits)
}

/// The same record as a program of another version would write it.
#[cfg(test)]
pub(crate) fn resealed(bytes: &[u8], version: u32) -> Vec<u8> {
    let mut envelope: Envelope<Value> = serde_json::from_slice(bytes).unwrap();
    envelope.version = version;
    envelope.checksum = String::new();
    envelope.checksum = checksum(&mut envelope).unwrap();
    pretty(&envelope).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        revision: 3,
        sequence: Seq(41),
    };

    #[test]
    fn a_record_reads_back_and_a_changed_one_does_not() {
        let bytes = seal(Kind::Job, "1", true, STAMP, &vec!["a", "b"]).unwrap();
        assert_eq!(open::<Vec<String>>(Kind::Job, &bytes).unwrap(), ["a", "b"]);
        assert_eq!(read(&bytes).unwrap().stamp, STAMP);
        let changed = String::from_utf8(bytes.clone())
            .unwrap()
            .replace("\"b\"", "\"c\"");
        assert!(matches!(
            open::<Vec<String>>(Kind::Job, changed.as_bytes()),
            Err(EnvelopeError::Checksum)
        ));
        assert!(matches!(
            open::<Vec<String>>(Kind::Token, &bytes),
            Err(EnvelopeError::Kind { .. })
        ));
    }

    #[test]
    fn a_newer_record_is_told_from_one_with_a_damaged_version() {
        let bytes = seal(Kind::Job, "1", true, STAMP, &"body").unwrap();
        let newer = resealed(&bytes, 3);
        let text = String::from_utf8(bytes).unwrap();
        let damaged = text.replace("\"version\": 1", "\"version\": 3");
        let read = |bytes: &[u8]| read(bytes).map(|record| record.kind);
        assert!(matches!(
            read(damaged.as_bytes()),
            Err(EnvelopeError::Checksum)
        ));
        assert!(matches!(read(&newer), Err(EnvelopeError::Newer(3))));
    }

    #[test]
    fn a_record_outlives_changes_of_its_type_and_its_spacing_and_no_changed_value() {
        #[derive(Serialize)]
        struct Old {
            name: &'static str,
            forgotten: u32,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct New {
            name: String,
            #[serde(default)]
            added: Option<u32>,
        }
        let old = Old {
            name: "a",
            forgotten: 1,
        };
        let text = String::from_utf8(seal(Kind::Job, "1", true, STAMP, &old).unwrap()).unwrap();
        let compact: String = text.split_whitespace().collect();
        let reordered =
            compact.replace(r#""name":"a","forgotten":1"#, r#""forgotten":1,"name":"a""#);
        assert_ne!(reordered, compact);
        for same in [&text, &compact, &reordered] {
            let new = New {
                name: "a".to_owned(),
                added: None,
            };
            assert_eq!(
                open::<New>(Kind::Job, same.as_bytes()).unwrap(),
                new,
                "{same}"
            );
        }
        for (from, to) in [
            ("true", "false"),
            (r#""id":"1""#, r#""id":"2""#),
            (r#""revision":3"#, r#""revision":4"#),
            (r#""sequence":41"#, r#""sequence":40"#),
            (r#""forgotten":1"#, r#""forgotten":2"#),
        ] {
            let changed = compact.replace(from, to);
            let read = open::<New>(Kind::Job, changed.as_bytes());
            assert!(matches!(read, Err(EnvelopeError::Checksum)), "{changed}");
        }
        assert!(matches!(
            open::<New>(Kind::Job, b"{}"),
            Err(EnvelopeError::Malformed(_))
        ));
    }
}
