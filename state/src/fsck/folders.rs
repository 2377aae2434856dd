//! Checks all folders except jobs, workflows and blobs, and the store's own files.

use std::path::Path;

use chrono::NaiveDate;
use model::callback::{IndexedPage, Interaction};
use model::event::Event;
use model::outbox::DeliveryRecord;
use serde::de::DeserializeOwned;
use store::look::{Part, Role};

use super::check::{Check, join};
use super::damaged_lines::DamagedLines;
use super::finding::Code;
use super::jobs::check_expiry_record;
use super::lines::each_line;
use crate::audit::AuditRecord;
use crate::layout::{RecordPlace, is_mirror};
use crate::record::Typed;
use crate::tail::DayLedger;

/// Checks a folder of records, with the folders in it.
pub(crate) fn check(check: &mut Check<'_>, folder: &str) {
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            // Git's own files.
            Role::Folder if is_mirror(Path::new(&path)) => {}
            Role::Folder => self::check(check, &path),
            Role::File(key) if is_of_interactions(&key) => match RecordPlace::parse(&key) {
                Some(RecordPlace::Interactions) => check_day::<Interaction>(check, &key),
                Some(RecordPlace::InteractionIndex) => check_day::<IndexedPage>(check, &key),
                _ => {}
            },
            // Objects. Reading a body compares it with its record.
            Role::File(key)
                if matches!(
                    RecordPlace::parse(&key),
                    Some(RecordPlace::Payload | RecordPlace::MintedLines)
                ) => {}
            Role::File(key) if key.is_record() => {
                if let Some(checked) = check.record(&key) {
                    check_body(check, &key, &checked.typed);
                }
            }
            _ => check.unknown(&path),
        }
    }
}

fn is_of_interactions(key: &store::Key) -> bool {
    matches!(
        RecordPlace::parse(key),
        Some(RecordPlace::Interactions | RecordPlace::RawRequests | RecordPlace::InteractionIndex)
    )
}

fn check_body(check: &mut Check<'_>, key: &store::Key, typed: &Typed) {
    if let Typed::Secrets(secrets) = typed {
        for (name, secret) in &secrets.secrets {
            if !secret.sealed.is_well_formed() {
                check.find(Code::SecretMalformed, key, format!("secret `{name}`"));
            }
        }
    }
    if let Typed::Channel(channel) = typed
        && let Some(secret) = &channel.secret
        && !secret.is_well_formed()
    {
        check.find(Code::SecretMalformed, key, "its secret");
    }
    if let Typed::CallbackCertificate(certificate) = typed
        && let Some(secret) = &certificate.secret
        && !secret.is_well_formed()
    {
        check.find(Code::SecretMalformed, key, "its secret");
    }
    if let Typed::Expiry(expiry) = typed {
        check_expiry_record(check, key, expiry);
    }
}

pub(crate) fn check_store(check: &mut Check<'_>) {
    for damage in check.look.damage() {
        let (code, what) = match damage.part {
            Part::Checkpoint => (Code::CheckpointDamaged, damage.what.clone()),
            Part::Index => (Code::IndexDamaged, damage.what.clone()),
            Part::Journal { first, last } => (
                Code::JournalDamaged,
                format!(
                    "at byte {}: {}; the changes {first} to {last} may be lost",
                    damage.offset, damage.what
                ),
            ),
        };
        check.find(code, &damage.path, what);
    }
    if !check.known.is_used {
        let leftovers = check.look.leftovers();
        for path in check.readable("tmp", leftovers).unwrap_or_default() {
            check.find(Code::Leftover, path, "a write never ended");
        }
    }
    let missing: Vec<_> = check
        .look
        .live()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    for key in missing {
        let length = check.look.length(&key);
        if let Ok(None) = length {
            check.find(
                Code::RecordMissing,
                &key,
                "the live index has it, but its file is missing",
            );
        }
    }
}

/// Checks the root, and collects the known folders in it.
pub(crate) fn check_root(check: &mut Check<'_>) {
    for entry in check.entries("") {
        match (&entry.role, entry.name.as_str()) {
            // Nothing refers to the files of days, and their lines refer to nothing.
            (Role::Folder, "audit") => check_days::<AuditRecord>(check, "audit"),
            (Role::Folder, "events") => check_days::<Event>(check, "events"),
            (Role::Folder, "deliveries") => check_days::<DeliveryRecord>(check, "deliveries"),
            (Role::Folder, name) if RecordPlace::is_top_folder(name) => {
                check.facts.folders.push(entry.name);
            }
            (Role::File(key), name) => match RecordPlace::parse(key) {
                Some(RecordPlace::InitialAdminToken) => {}
                Some(RecordPlace::Clock) => drop(check.record(key)),
                Some(_) | None => check.unknown(name),
            },
            (_, name) => check.unknown(name),
        }
    }
}

/// Checks that a folder contains only files named after a day, and their lines.
fn check_days<L: DayLedger + DeserializeOwned>(check: &mut Check<'_>, folder: &str) {
    for entry in check.entries(folder) {
        match entry.role {
            Role::File(key) if L::PLACE.word::<NaiveDate>(&key, "day").is_some() => {
                check_day::<L>(check, &key);
            }
            _ => check.unknown(&join(folder, &entry.name)),
        }
    }
}

fn check_day<L: DeserializeOwned>(check: &mut Check<'_>, key: &store::Key) {
    let mut damaged = DamagedLines::new(Code::LedgerLine, key);
    let read = each_line(check.look, key, u64::MAX, |at, line| {
        if let Err(problem) = serde_json::from_slice::<L>(line) {
            damaged.add(at, problem);
        } else if !line.ends_with(b"\n") {
            damaged.add(at, "the line has no end");
        }
    });
    check.readable(key.as_str(), read);
    damaged.finish(check);
}
