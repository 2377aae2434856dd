//! The lines of a mint: which payload each of its tags was planted with, and for which target.
//!
//! Each payload has a line for each target, so the object has only both lists: their lengths, the place of each entry, and the
//! entries. A hit reads a few bytes of it, however many lines there are.

use bytes::Bytes;
use model::PayloadName;
use model::callback::{CallbackId, Mint};
use model::decide::{MintTags, NewMint};
use model::payload::name_and_version;
use store::volume::ReadAt;
use store::{Fault, Staged};

use crate::blocking::on_volume;
use crate::encode::adopt;
use crate::error::{ReadError, SubmitError};
use crate::layout::Layout;
use crate::state::State;

/// What was rendered: each payload for each target, or once without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MintedLines {
    pub payloads: Vec<(PayloadName, u64)>,
    pub targets: Vec<String>,
}

/// A payload with its version, and the target, if there are targets.
pub type MintedLine = (PayloadName, u64, Option<String>);

impl MintedLines {
    /// The content of the object.
    pub fn encode(&self) -> Bytes {
        let payloads = self.payloads.iter();
        let payloads = payloads.map(|(name, version)| format!("{name}@{version}"));
        let texts = payloads.chain(self.targets.iter().cloned());
        let (mut places, mut all) = (Vec::new(), Vec::new());
        for length in [self.payloads.len(), self.targets.len()] {
            places.extend((length as u32).to_le_bytes());
        }
        places.extend(0_u32.to_le_bytes());
        for text in texts {
            all.extend(text.into_bytes());
            places.extend((all.len() as u32).to_le_bytes());
        }
        [places, all].concat().into()
    }
}

impl State {
    /// Mints tags of which each has a line of an object.
    pub async fn mint_lines(&self, mint: MintTags, lines: Staged) -> Result<NewMint, SubmitError> {
        self.submit_with(mint, None, move |decision, batch| {
            let Mint { server, number, .. } = *decision.answer.mint;
            adopt(batch, Layout::minted_lines(server, number), lines.clone());
        })
        .await
    }

    /// A line of a mint. None if its object is gone.
    pub async fn minted_line(
        &self,
        server: CallbackId,
        number: u32,
        line: u32,
    ) -> Result<Option<MintedLine>, ReadError> {
        let key = Layout::minted_lines(server, number);
        let path = key.clone();
        let read = on_volume(self.volume(), move |volume| {
            let fail = |source| ReadError::file(&key, source);
            let opened = volume.open_object(&key).map_err(fail)?;
            let read = opened.map(|file| read(&*file, line)).transpose();
            read.map_err(fail)
        });
        let Some(found) = read.await? else {
            return Ok(None);
        };
        let damaged = || ReadError::damaged(path, "it has no such line");
        found.map(Some).ok_or_else(damaged)
    }
}

fn read(file: &dyn ReadAt, line: u32) -> Result<Option<MintedLine>, Fault> {
    let numbers = |at: u64| -> Result<Option<[u64; 2]>, Fault> {
        let bytes: Option<[u8; 8]> = file.read_at(at, 8)?.try_into().ok();
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |all, it| (all << 8) | u64::from(*it))
        };
        Ok(bytes.map(|bytes| [number(&bytes[..4]), number(&bytes[4..])]))
    };
    let Some([payloads, targets]) = numbers(0)? else {
        return Ok(None);
    };
    let text = |index: u64| -> Result<Option<String>, Fault> {
        let Some([begin, end]) = numbers(8 + 4 * index)? else {
            return Ok(None);
        };
        let texts = 8 + 4 * (payloads + targets + 1);
        let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX);
        let bytes = file.read_at(texts + begin, length)?;
        Ok(String::from_utf8(bytes).ok())
    };
    let (line, each) = (u64::from(line), targets.max(1));
    if line / each >= payloads {
        return Ok(None);
    }
    let payload = text(line / each)?;
    let payload = payload.as_deref().and_then(name_and_version);
    let target = match targets {
        0 => None,
        _ => text(payloads + line % each)?,
    };
    Ok(match payload {
        Some((name, Some(version))) if target.is_some() == (targets > 0) => {
            Some((name, version, target))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(payloads: &[(&str, u64)], targets: &[&str]) -> MintedLines {
        let payloads = payloads.iter();
        MintedLines {
            payloads: payloads
                .map(|(name, version)| (name.parse().unwrap(), *version))
                .collect(),
            targets: targets.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn each_line_is_read_again_and_damage_is_none() {
        let payloads = [("a.svg", 3), ("b", 1_000)];
        for targets in [&[][..], &["x"], &["", "t\u{e9}", "http://a/?b=c"]] {
            let bytes = lines(&payloads, targets).encode();
            let mut expected = Vec::new();
            for (name, version) in payloads {
                let line = |target: Option<&&str>| {
                    (
                        name.parse().unwrap(),
                        version,
                        target.map(|it| (*it).to_owned()),
                    )
                };
                match targets {
                    [] => expected.push(line(None)),
                    _ => expected.extend(targets.iter().map(|it| line(Some(it)))),
                }
            }
            for (line, expected) in (0..).zip(&expected) {
                assert_eq!(read(&bytes, line).unwrap().as_ref(), Some(expected));
            }
            assert_eq!(read(&bytes, expected.len() as u32).unwrap(), None);
            for length in 0..bytes.len() {
                // Whatever is left of a damaged object, reading it ends.
                let _ = read(&bytes.slice(..length), 0).unwrap();
            }
            assert_eq!(read(&bytes.slice(..9), 0).unwrap(), None);
        }
        let wild = Bytes::from(vec![0xff; 64]);
        assert_eq!(read(&wild, 0).unwrap(), None);
    }
}
