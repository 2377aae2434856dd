//! Typed records on the store, with the committer, job logs, histories and objects.
//!
//! Every change enters through [`State::submit`] and is decided, committed and only then published. Reads see only
//! durable data. This package knows neither Git nor HTTP.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests write files and start programs"
    )
)]

mod alarm;
mod audit;
mod backup;
mod backwards;
pub mod blobs;
mod blocking;
mod committer;
mod damaged;
mod download;
mod encode;
mod ended_jobs;
mod entries;
mod envelope;
mod error;
mod feed;
mod finished;
pub mod fsck;
mod heads;
mod history;
pub mod inspect;
mod interactions;
mod jobs;
mod later_audit;
mod layout;
mod ledger;
mod limits;
mod load;
mod log;
mod lost_workflows;
mod measure;
mod minted_lines;
mod open;
mod page_index;
mod past;
mod payload;
mod payload_bodies;
mod pretty;
mod publication;
mod reader;
mod rebuilt;
mod recent;
mod record;
mod restored;
mod revisions;
mod scan_places;
mod state;
mod tail;
mod tails;
mod tips;
mod upload;
mod warned;
mod watchers;
mod written;
mod zip_directory;

pub use audit::{AuditActor, AuditEntry, AuditFilter, AuditRecord};
pub use backup::{back_up, restore};
pub use download::Download;
pub use error::{CloseError, Fatal, OpenError, PayloadError, ReadError, SubmitError, WriteError};
pub use feed::{ChangesGone, Published, Subscription};
pub use finished::FinishedJobs;
pub use interactions::{InteractionFilter, InteractionPage, InteractionPlace};
pub use jobs::{JobFilter, JobPage};
pub use later_audit::{LaterAudit, LaterAuditError};
pub use layout::{mirror_folder, mirrors_folder};
pub use ledger::Ledger;
pub use log::{
    CompleteError, EncodedRecord, LogError, LogFilter, LogMatches, LogReceipt, LogRecord,
    LogSearch, LogStream, Logs, NewLogRecord, Stream,
};
pub use measure::CommitMeasure;
pub use minted_lines::{MintedLine, MintedLines};
pub use open::{Closing, Options};
pub use past::HistoryPage;
pub use revisions::StoredRevision;
pub use state::State;
pub use store::backup::{Copied, CopyError};
pub use store::{DiskBytes, Room, Seq};
pub use tail::{DayPage, DayPlace};
pub use upload::Upload;
pub use warned::DamagedLines;
pub use zip_directory::{ZipEntry, ZipProblem};

#[cfg(test)]
mod tests;
