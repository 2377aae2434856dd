//! From changes to files: which key a record has, whether it is live, how it looks.

use bytes::Bytes;
use model::{Change, Inputs};
use serde::Serialize;
use store::{Append, Batch, Key, Put, Staged};

use crate::envelope::{Kind, seal};
use crate::layout::Layout;
use crate::repeats::RepeatsRecord;
use crate::written::{Rewritten, Written};

/// Encodes for the commit after what was written.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'a> {
    written: &'a Written,
    rewritten: Option<&'a Rewritten>,
}

impl<'a> Encoder<'a> {
    pub(crate) const fn new(written: &'a Written) -> Self {
        Self {
            written,
            rewritten: None,
        }
    }

    /// The same for a command that writes a settled record once more.
    pub(crate) const fn rewriting(self, rewritten: Option<&'a Rewritten>) -> Self {
        Self { rewritten, ..self }
    }

    /// A batch with nothing in it.
    pub(crate) fn empty(self) -> Batch {
        Batch::new(self.written.epoch)
    }

    /// The changes of one decision as a batch of its own.
    pub(crate) fn encode(self, changes: &[Change]) -> Result<Batch, serde_json::Error> {
        let mut encoding = Encoding {
            batch: self.empty(),
            encoder: self,
        };
        changes
            .iter()
            .try_for_each(|change| encoding.change(change))?;
        Ok(encoding.batch)
    }
}

/// A batch that is being put together.
struct Encoding<'a> {
    encoder: Encoder<'a>,
    batch: Batch,
}

impl Encoding<'_> {
    fn change(&mut self, change: &Change) -> Result<(), serde_json::Error> {
        match change {
            Change::Source(source) => self.record(
                Layout::source(&source.name),
                Kind::Source,
                source.name.as_str(),
                true,
                &**source,
            ),
            Change::Tip(tip) => {
                let key = Layout::tip(&tip.source, tip.tip.number, &tip.tip.commit);
                self.record(key, Kind::Tip, &tip.tip.commit, false, &**tip)
            }
            Change::Workflow(workflow) => {
                let id = workflow.id.to_string();
                self.record(
                    Layout::workflow(workflow.id),
                    Kind::Workflow,
                    &id,
                    true,
                    &**workflow,
                )
            }
            Change::Revision(revision, text) => {
                let record_body = &revision.record;
                let (workflow, reference) = (record_body.workflow.id, &record_body.reference);
                if let Some(text) = text {
                    let bytes = Bytes::copy_from_slice(text.as_bytes());
                    put(
                        &mut self.batch,
                        Layout::revision_text(workflow, reference),
                        Put { bytes, live: false },
                    );
                }
                let key = Layout::revision(workflow, reference);
                self.record(
                    key,
                    Kind::Revision,
                    &reference.id.to_string(),
                    false,
                    record_body,
                )
            }
            Change::Digests(digests) => self.record(
                Layout::digests(&digests.key()),
                Kind::Digests,
                digests.scan.as_str(),
                true,
                &**digests,
            ),
            Change::Repeats(scan, None) => {
                delete(&mut self.batch, Layout::repeats(scan));
                Ok(())
            }
            Change::Repeats(scan, Some(repeats)) => self.record(
                Layout::repeats(scan),
                Kind::Repeats,
                scan.scan.as_str(),
                true,
                &RepeatsRecord {
                    scan: scan.clone(),
                    repeats: repeats.clone(),
                },
            ),
            Change::Head(head) => self.record(
                Layout::head(&head.key()),
                Kind::ScanHead,
                head.scan.as_str(),
                true,
                &**head,
            ),
            Change::Job(job) => self.record(
                Layout::job(job.id),
                Kind::Job,
                &job.id.to_string(),
                !job.state.is_terminal(),
                &**job,
            ),
            Change::History(entry) => {
                self.batch.appends.push(Append {
                    ledger: Layout::history(&entry.scan, entry.page),
                    at: entry.at,
                    bytes: Bytes::copy_from_slice(entry.text.as_bytes()),
                });
                Ok(())
            }
            Change::JobRemoved(job) => {
                delete(&mut self.batch, Layout::job(job.id));
                delete(&mut self.batch, Layout::log(job.id));
                if let Inputs::Object { .. } = job.inputs {
                    delete(&mut self.batch, Layout::inputs(job.id));
                }
                for artifact in job.stored_artifacts() {
                    delete(&mut self.batch, Layout::artifact(job.id, &artifact.name));
                }
                if let Some(expiry) = job.expiry() {
                    delete(&mut self.batch, Layout::expiry(&expiry));
                }
                Ok(())
            }
            Change::ArtifactRemoved(job, name) => {
                delete(&mut self.batch, Layout::artifact(*job, name));
                Ok(())
            }
            Change::Expiry(expiry) => self.record(
                Layout::expiry(expiry),
                Kind::Expiry,
                &expiry.job.to_string(),
                false,
                expiry,
            ),
            Change::ExpiryRemoved(expiry) => {
                delete(&mut self.batch, Layout::expiry(expiry));
                Ok(())
            }
            Change::Retention(retention) => self.record(
                Layout::retention(&retention.key()),
                Kind::Retention,
                retention.scan.as_str(),
                true,
                &**retention,
            ),
            Change::HistoryPageRemoved(scan, page) => {
                delete(&mut self.batch, Layout::history(scan, *page));
                Ok(())
            }
            Change::Ledger(entry) => {
                self.batch.appends.push(Append {
                    ledger: Layout::ledger(&entry.scan, entry.page),
                    at: entry.at,
                    bytes: Bytes::copy_from_slice(entry.text.as_bytes()),
                });
                Ok(())
            }
            Change::LedgerPageRemoved(scan, page) => {
                delete(&mut self.batch, Layout::ledger(scan, *page));
                Ok(())
            }
            Change::Recent(..) => Ok(()),
            Change::Runner(runner) => self.record(
                Layout::runner(runner.id),
                Kind::Runner,
                &runner.id.to_string(),
                true,
                &**runner,
            ),
            Change::RunnerRemoved(id) => {
                delete(&mut self.batch, Layout::runner(*id));
                Ok(())
            }
            Change::Token(token) => self.record(
                Layout::token(token.id),
                Kind::Token,
                &token.id.to_string(),
                true,
                &**token,
            ),
            Change::Registration(registration) => {
                let id = registration.id.to_string();
                self.record(
                    Layout::registration(registration.id),
                    Kind::Registration,
                    &id,
                    true,
                    &**registration,
                )
            }
            Change::RegistrationRemoved(id) => {
                delete(&mut self.batch, Layout::registration(*id));
                Ok(())
            }
            Change::Vars(vars) => self.record(
                Layout::vars(vars.project),
                Kind::Vars,
                &vars.project.to_string(),
                true,
                &**vars,
            ),
            Change::Secrets(secrets) => self.record(
                Layout::secrets(secrets.project),
                Kind::Secrets,
                &secrets.project.to_string(),
                true,
                &**secrets,
            ),
            Change::Idempotency(request) => self.record(
                Layout::idempotency(&request.key),
                Kind::Idempotency,
                &request.key,
                true,
                &**request,
            ),
            Change::IdempotencyRemoved(key) => {
                delete(&mut self.batch, Layout::idempotency(key));
                Ok(())
            }
            Change::ClockFollowed(_) => Ok(()),
        }
    }

    fn record<B: Serialize>(
        &mut self,
        key: Key,
        kind: Kind,
        id: &str,
        live: bool,
        body: &B,
    ) -> Result<(), serde_json::Error> {
        let Encoder { written, rewritten } = self.encoder;
        let stamp = written.stamp(&key, rewritten);
        let bytes = Bytes::from(seal(kind, id, live, stamp, body)?);
        put(&mut self.batch, key, Put { bytes, live });
        Ok(())
    }
}

fn put(batch: &mut Batch, key: Key, put: Put) {
    batch.deletes.remove(&key);
    batch.adopts.remove(&key);
    batch.puts.insert(key, put);
}

fn delete(batch: &mut Batch, key: Key) {
    batch.puts.remove(&key);
    batch.adopts.remove(&key);
    batch.deletes.insert(key);
}

/// Lets the batch give an object its key.
pub(crate) fn adopt(batch: &mut Batch, key: Key, staged: Staged) {
    batch.puts.remove(&key);
    batch.deletes.remove(&key);
    batch.adopts.insert(key, staged);
}

/// Adds a later batch to an earlier one: the last value of each key counts.
pub(crate) fn fold(batch: &mut Batch, later: Batch) {
    for (key, value) in later.puts {
        put(batch, key, value);
    }
    for key in later.deletes {
        delete(batch, key);
    }
    for (key, staged) in later.adopts {
        adopt(batch, key, staged);
    }
    batch.appends.extend(later.appends);
}
