//! Turns changes into batches of the store.

use bytes::Bytes;
use model::callback::InteractionChange;
use model::{Change, Inputs, Job, JobState, World};
use store::{Append, Batch, Key, Put, Staged};

use crate::envelope::seal;
use crate::layout::Layout;
use crate::record::{Record, RepeatsRecord};
use crate::written::{Rewritten, Written};

/// Encodes changes for the next commit.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'a> {
    written: &'a Written,
    /// The world before the changes.
    world: &'a World,
    rewritten: Option<&'a Rewritten>,
}

impl<'a> Encoder<'a> {
    pub(crate) const fn new(written: &'a Written, world: &'a World) -> Self {
        Self {
            written,
            world,
            rewritten: None,
        }
    }

    /// An encoder for a command that changes the settled record `rewritten`.
    pub(crate) const fn rewriting(self, rewritten: Option<&'a Rewritten>) -> Self {
        Self { rewritten, ..self }
    }

    pub(crate) fn empty(self) -> Batch {
        Batch::new(self.written.epoch)
    }

    /// The changes of one decision as a batch of its own.
    pub(crate) fn encode(self, changes: &[Change]) -> Result<Batch, serde_json::Error> {
        let mut encoding = Encoding {
            batch: self.empty(),
            encoder: self,
            clock: None,
            failed: None,
        };
        for change in changes {
            encoding.clock = self.world.clock_of(change);
            encoding.change(change);
        }
        encoding.failed.map_or(Ok(encoding.batch), Err)
    }
}

struct Encoding<'a> {
    encoder: Encoder<'a>,
    batch: Batch,
    /// The clock behind the expiry times of the current record.
    clock: Option<u64>,
    /// The first error. It means that a record is missing in the batch.
    failed: Option<serde_json::Error>,
}

impl Encoding<'_> {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Source(source) => self.record(&**source),
            Change::Tip(tip) => self.record(&**tip),
            Change::Workflow(workflow) => self.record(&**workflow),
            Change::Suspension(suspension) => self.record(&**suspension),
            Change::Revision(revision, text) => {
                let record = &revision.record;
                if let Some(text) = text {
                    let key = Layout::revision_text(record.workflow.id, &record.reference);
                    let bytes = Bytes::copy_from_slice(text.as_bytes());
                    put(&mut self.batch, key, Put { bytes, live: false });
                }
                self.record(record)
            }
            Change::Digests(digests) => self.record(&**digests),
            Change::Repeats(scan, None) => self.delete(Layout::repeats(scan)),
            Change::Repeats(scan, Some(repeats)) => self.record(&RepeatsRecord {
                scan: scan.clone(),
                repeats: repeats.clone(),
            }),
            Change::Head(head) => self.record(&**head),
            Change::Job(job) => self.record(&**job),
            Change::JobRemoved(job) => self.remove_job(job),
            Change::ArtifactRemoved(job, name) => self.delete(Layout::artifact(*job, name)),
            Change::Expiry(expiry) => self.record(expiry),
            Change::ExpiryRemoved(expiry) => self.delete(Layout::expiry(expiry)),
            Change::Retention(retention) => self.record(&**retention),
            Change::History(entry) => {
                let page = Layout::history(&entry.scan, entry.page);
                self.append(page, entry.at, &entry.text)
            }
            Change::HistoryPageRemoved(scan, page) => self.delete(Layout::history(scan, *page)),
            Change::Ledger(entry) => {
                let page = Layout::ledger(&entry.scan, entry.page);
                self.append(page, entry.at, &entry.text)
            }
            Change::LedgerPageRemoved(scan, page) => self.delete(Layout::ledger(scan, *page)),
            Change::Runner(runner) => self.record(&**runner),
            Change::RunnerRemoved(runner) => self.delete(Layout::runner(runner.id)),
            Change::Token(token) => self.record(&**token),
            Change::TokenRemoved(id) => self.delete(Layout::token(*id)),
            Change::User(user) => self.record(&**user),
            Change::Session(session) => self.record(&**session),
            Change::SessionRemoved(session) => self.delete(Layout::session(session.id)),
            Change::Registration(registration) => self.record(&**registration),
            Change::RegistrationRemoved(id) => self.delete(Layout::registration(*id)),
            Change::Vars(vars) => self.record(&**vars),
            Change::Secrets(secrets) => self.record(&**secrets),
            Change::Rules(rules) => self.record(&**rules),
            Change::Blob(blob) => self.record(&**blob),
            Change::BlobRemoved(project, path) => {
                self.delete(Layout::blob_record(*project, path));
                self.delete(Layout::blob(*project, path));
            }
            Change::BlobLink(link) => self.record(&**link),
            Change::BlobLinkRemoved(id) => self.delete(Layout::blob_link(*id)),
            Change::BlobUsage(usage) => self.record(&**usage),
            Change::Idempotency(request) => self.record(&**request),
            Change::IdempotencyRemoved(key) => self.delete(Layout::idempotency(key)),
            Change::Condition(condition) => self.record(&**condition),
            Change::ConditionClosed(condition, _) => self.delete(Layout::condition(condition.id)),
            Change::Channel(channel) => self.record(&**channel),
            Change::ChannelRemoved(id) => self.delete(Layout::channel(*id)),
            Change::Outgoing(outgoing) => self.record(&**outgoing),
            Change::OutgoingRemoved(id) => self.delete(Layout::outgoing(*id)),
            Change::Callback(callback) => self.record(&**callback),
            Change::CallbackRemoved(id) => self.delete(Layout::callback(*id)),
            Change::CallbackToken(token) => self.record(&**token),
            Change::CallbackTokenRemoved(server, tag) => {
                self.delete(Layout::callback_token(*server, *tag));
            }
            Change::PayloadGroup(group) => self.record(&**group),
            Change::PayloadGroupRemoved(id) => self.delete(Layout::payload_group(*id)),
            Change::PayloadVersionRemoved(group, name, version) => {
                self.delete(Layout::payload(*group, name, *version));
            }
            Change::Minted(mint) => self.record(&**mint),
            Change::MintRemoved(server, number) => {
                self.delete(Layout::minted(*server, *number));
                self.delete(Layout::minted_lines(*server, *number));
            }
            Change::CallbackCertificate(certificate) => self.record(&**certificate),
            Change::Interactions(server, change) => match &**change {
                InteractionChange::Indexed { file, at, text } => {
                    self.append(Layout::interaction_index(server, *file), *at, text);
                }
                InteractionChange::PageRemoved(page) => {
                    self.delete(Layout::interactions(server, *page));
                    self.delete(Layout::raw_requests(server, *page));
                }
                InteractionChange::IndexRemoved(file) => {
                    self.delete(Layout::interaction_index(server, *file));
                }
                // The command adds the lines: see `State::record_interactions`.
                InteractionChange::Recorded(_) => {}
            },
            Change::Clocks(Some(clocks)) => self.record(&**clocks),
            Change::Clocks(None) => self.delete(Layout::clock()),
            // Events and deliveries are lines of ledgers: see `Tails`.
            Change::RevisionRead(_)
            | Change::Recent(..)
            | Change::ClockFollowed(_)
            | Change::Event(_)
            | Change::Delivery(_) => {}
        }
    }

    fn record<R: Record>(&mut self, record: &R) {
        let Encoder {
            written, rewritten, ..
        } = self.encoder;
        let (key, live) = (record.place(), record.is_live());
        let stamp = written.stamp(&key, rewritten, self.clock);
        match seal(record, stamp) {
            Ok(bytes) => put(
                &mut self.batch,
                key,
                Put {
                    bytes: bytes.into(),
                    live,
                },
            ),
            Err(error) => drop(self.failed.get_or_insert(error)),
        }
    }

    fn append(&mut self, ledger: Key, at: u64, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.batch.appends.push(Append { ledger, at, bytes });
    }

    fn delete(&mut self, key: Key) {
        delete(&mut self.batch, key);
    }

    /// Deletes every file of a job.
    fn remove_job(&mut self, job: &Job) {
        self.delete(Layout::job(job.id));
        self.delete(Layout::log(job.id));
        if let Inputs::Object { .. } = job.inputs {
            self.delete(Layout::inputs(job.id));
        }
        for artifact in job.stored_artifacts() {
            self.delete(Layout::artifact(job.id, &artifact.name));
        }
        if let Some(expiry) = job.expiry() {
            self.delete(Layout::expiry(&expiry));
        }
    }
}

fn put(batch: &mut Batch, key: Key, put: Put) {
    batch.deletes.remove(&key);
    batch.adopts.remove(&key);
    batch.puts.insert(key, put);
}

pub(crate) fn delete(batch: &mut Batch, key: Key) {
    batch.puts.remove(&key);
    batch.adopts.remove(&key);
    batch.deletes.insert(key);
}

/// Makes the batch give an object its key.
pub(crate) fn adopt(batch: &mut Batch, key: Key, staged: Staged) {
    batch.puts.remove(&key);
    batch.deletes.remove(&key);
    batch.adopts.insert(key, staged);
}

/// Gives a copy of large inputs to the retry that a decision makes.
pub(crate) fn adopt_inputs(batch: &mut Batch, changes: &[Change], copy: Option<Staged>) {
    let jobs = changes.iter().filter_map(Change::job);
    let mut new = jobs.filter(|job| job.state == JobState::Scheduled);
    let retry = new.find(|job| job.retry_of.is_some());
    if let Some((retry, copy)) = retry.zip(copy) {
        adopt(batch, Layout::inputs(retry.id), copy);
    }
}

/// Adds a later batch to an earlier one. The later value of a key wins.
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
