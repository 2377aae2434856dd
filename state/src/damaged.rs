//! Live records that cannot be read, or that are at another record's key.
//!
//! The daemon keeps a copy of each in `quarantine/`. Then a commit rebuilds the record from other files, or removes it.
//! So no record is lost silently, and the daemon serves everything else.

use std::sync::Arc;

use bytes::Bytes;
use model::{Change, ProjectSecrets, ProjectVars, WorkflowId, World};
use store::{Batch, Engine, Key, Seq};

use crate::blobs;
use crate::envelope::EnvelopeError;
use crate::error::{OpenError, ReadError};
use crate::layout::{Layout, RecordPlace};
use crate::limits::ROUND_COMMANDS;
use crate::reader::StoreReader;
use crate::rebuilt;
use crate::scan_places::scan_at;
use crate::written::{Keys, Written};

/// A live record that cannot be read.
pub(crate) struct Damaged {
    key: Key,
    bytes: Bytes,
    problem: String,
    /// The consequence of losing the record.
    loss: &'static str,
    /// The new record. `None`: the record is removed.
    pub(crate) replacement: Option<Change>,
}

impl Damaged {
    pub(crate) fn new(
        key: &Key,
        bytes: &[u8],
        problem: &EnvelopeError,
        loss: &'static str,
    ) -> Self {
        Self {
            key: key.clone(),
            bytes: Bytes::copy_from_slice(bytes),
            problem: problem.to_string(),
            loss,
            replacement: None,
        }
    }

    /// Rebuilds the record from other files, if possible. `last` is the store's latest commit.
    ///
    /// Fails if a history cannot be searched: without the head of an existing history, the next line would overwrite
    /// the history.
    pub(crate) async fn find_replacement(
        &mut self,
        reader: &StoreReader,
        world: &World,
        last: Seq,
    ) -> Result<(), ReadError> {
        let Some(place) = RecordPlace::parse(&self.key) else {
            return Ok(());
        };
        let project = || place.word(&self.key, "project");
        self.replacement = match place {
            RecordPlace::Workflow => {
                let id: Option<WorkflowId> = place.word(&self.key, "workflow");
                let restored = id.and_then(|id| world.workflow_record(id).cloned());
                restored.map(Change::Workflow)
            }
            RecordPlace::Vars => project().map(|id| {
                Change::Vars(Arc::new(ProjectVars {
                    latest_version: version_after(last),
                    ..ProjectVars::none(id)
                }))
            }),
            RecordPlace::Secrets => project().map(|id| {
                Change::Secrets(Arc::new(ProjectSecrets {
                    latest_version: version_after(last),
                    ..ProjectSecrets::none(id)
                }))
            }),
            RecordPlace::BlobUsage => match project() {
                Some(id) => {
                    let usage = blobs::counted(reader, id).await?;
                    Some(Change::BlobUsage(Arc::new(usage)))
                }
                None => None,
            },
            RecordPlace::Head => self.head_of_history(reader, world).await?,
            RecordPlace::Retention => {
                let rebuilt = self.retention_of_history(reader, world).await;
                rebuilt.unwrap_or_else(|error| {
                    tracing::error!(key = %self.key, %error, "a scan's history cannot be read");
                    None
                })
            }
            _ => None,
        };
        Ok(())
    }

    /// Rebuilds a scan's head from its history.
    async fn head_of_history(
        &self,
        reader: &StoreReader,
        world: &World,
    ) -> Result<Option<Change>, ReadError> {
        let Some(scan) = scan_at(reader, &self.key, Layout::head).await? else {
            return Ok(None);
        };
        let head = rebuilt::after_loss(reader, &world.retention_or_new(&scan)).await?;
        Ok(Some(Change::Head(Arc::new(head))))
    }

    /// Rebuilds a scan's record of removed jobs from its history and its head.
    async fn retention_of_history(
        &self,
        reader: &StoreReader,
        world: &World,
    ) -> Result<Option<Change>, ReadError> {
        let scan = scan_at(reader, &self.key, Layout::retention).await?;
        let Some(head) = scan.and_then(|scan| world.head(&scan).cloned()) else {
            return Ok(None);
        };
        let retention = rebuilt::retention_after_loss(reader, &head).await?;
        Ok(Some(Change::Retention(Arc::new(retention))))
    }

    /// Keeps a copy and replaces the record.
    pub(crate) async fn put_aside(
        self,
        engine: &mut impl Engine,
        written: &mut Written,
        world: &World,
    ) -> Result<(), OpenError> {
        let Self {
            key,
            bytes,
            problem,
            loss,
            replacement,
        } = self;
        let kept = engine
            .set_aside(&key, &bytes)
            .await
            .map_err(|source| OpenError::Keep {
                path: key.to_string(),
                source,
            })?;
        let mut batch = Batch::new(written.epoch);
        match written.encoder(world).encode(replacement.as_slice()) {
            Ok(replacing) if !replacing.is_empty() => batch = replacing,
            Ok(_) => drop(batch.deletes.insert(key.clone())),
            Err(error) => {
                tracing::error!(%key, %error, "the replacement of a damaged record cannot be written as JSON");
                batch.deletes.insert(key.clone());
            }
        }
        let keys = Keys::of(&batch);
        let sequence = engine
            .commit(batch)
            .await
            .map_err(|source| OpenError::Replace {
                path: key.to_string(),
                source,
            })?;
        written.committed(sequence, keys);
        tracing::error!(%key, problem, kept, "a record is damaged: {loss}; a copy of it is kept");
        Ok(())
    }
}

/// A version higher than that of any lost value: each command of a commit makes at most one version.
fn version_after(last: Seq) -> u64 {
    last.0.saturating_mul(ROUND_COMMANDS as u64)
}

/// The consequence of losing a live record, and the remedy. `None` if no live record can have this key.
pub(crate) fn loss(key: &Key) -> Option<&'static str> {
    Some(match RecordPlace::parse(key)? {
        RecordPlace::Source => "the next poll treats every file of the source as new",
        RecordPlace::Vars => "the vars of the project are gone; set them again",
        RecordPlace::Secrets => "the secrets of the project are gone; set them again",
        RecordPlace::Rules => {
            "the rules of the API are gone; set them again. The next poll reads those of `everscan.yaml`"
        }
        RecordPlace::BlobUsage => "the blobs of the project are counted again",
        RecordPlace::BlobLink => "the link is void; make another one",
        RecordPlace::BlobRecord => "the blob is gone; store it again",
        RecordPlace::WorkflowSuspension => {
            "the workflow is not suspended any more; suspend it again"
        }
        RecordPlace::Workflow => "it is rebuilt from the newest revision",
        RecordPlace::Head | RecordPlace::Retention => "it is rebuilt from the history of the scan",
        RecordPlace::Digests => {
            "the processed successes of other scans are lost; the digests are rebuilt from the jobs of the scan"
        }
        RecordPlace::ScanSuspension => "the scan is not suspended any more; suspend it again",
        RecordPlace::Repeats => {
            "the newest equal evaluations are missing in the ledger of the scan"
        }
        RecordPlace::Job => "the job is gone, and its runner stops it",
        RecordPlace::Runner => "the runner has to register again",
        RecordPlace::Registration => "the registration token is void; make another one",
        RecordPlace::Token => "the token is void; make another one",
        RecordPlace::User => {
            "the user cannot act, and its tokens and sessions are void; restore the file from a backup"
        }
        RecordPlace::Session => "the browser is signed out; sign in again",
        RecordPlace::Condition => "it opens again if it still holds",
        RecordPlace::Callback => {
            "the callback server is gone with its interactions; restore the file from a backup"
        }
        RecordPlace::CallbackToken => "the name is not answered any more; make another one",
        RecordPlace::PayloadGroup => {
            "the payload group is gone with its payloads; restore the file from a backup"
        }
        RecordPlace::CallbackCertificate => "another certificate is ordered",
        RecordPlace::Channel => "the channel is gone; add it again",
        RecordPlace::Outgoing => {
            "its events are not sent; `everscan condition list` shows what is still wrong"
        }
        RecordPlace::Clock => {
            "expiry times that were set before a jump of the clock may be off by the jump"
        }
        RecordPlace::Idempotency => "a repeat of the request is carried out again",
        RecordPlace::InitialAdminToken
        | RecordPlace::Tip
        | RecordPlace::Blob
        | RecordPlace::Revision
        | RecordPlace::RevisionText
        | RecordPlace::History
        | RecordPlace::Ledger
        | RecordPlace::Inputs
        | RecordPlace::Log
        | RecordPlace::Artifact
        | RecordPlace::Expiry
        | RecordPlace::Audit
        | RecordPlace::Events
        | RecordPlace::Deliveries
        | RecordPlace::Minted
        | RecordPlace::MintedLines
        | RecordPlace::Interactions
        | RecordPlace::RawRequests
        | RecordPlace::InteractionIndex
        | RecordPlace::Payload => return None,
    })
}
