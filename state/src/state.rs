//! The handle through which other packages read and change the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::decide::{Command, Decision, MakeOwner};
use model::event::Event;
use model::outbox::DeliveryRecord;
use model::retention::Position;
use model::{
    AuditAction, Clock, Guard, Job, JobId, PlainToken, Projects, Recent, RevisionRef, ScanKey,
    Timestamp, UserId, World,
};
use store::volume::Volume;
use store::{Batch, DiskBytes, Room, Seq};
use tokio::sync::{mpsc, oneshot, watch};

use crate::alarm::Alarm;
use crate::audit::{self, AuditEntry, AuditFilter, AuditRecord, Audited, NoChange};
use crate::blocking::room;
use crate::committer::{Submission, Waiting};
use crate::error::{Fatal, PayloadError, ReadError, SubmitError};
use crate::feed::{ChangesGone, Subscription};
use crate::history::KnownPast;
use crate::jobs::{JobFilter, JobPage, Listing, settled_job};
use crate::ledger::Ledger;
use crate::limits::FRUITLESS_PIECES;
use crate::log::Logs;
use crate::measure::{CommitMeasure, Measuring};
use crate::page_index::PageIndex;
use crate::publication::Publication;
use crate::reader::StoreReader;
use crate::recent::recent;
use crate::tail::{DayPage, DayPlace, day_page};
use crate::written::Rewritten;

/// The state of the service. Cheap to clone.
#[derive(Clone)]
pub struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: mpsc::Sender<Waiting>,
    /// Writes the audit lines for commands of this handle. `None` if it does not serve a person's request.
    pub(crate) audited: Option<Arc<Audited>>,
    /// Checked in each decision of this handle. `None` if it does not serve a person's request.
    pub(crate) guard: Option<Arc<Guard>>,
}

pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    /// The last commit when the state was opened.
    pub(crate) found: Seq,
    pub(crate) has_lost_tokens: bool,
    pub(crate) has_lost_users: bool,
    pub(crate) publication: Arc<Publication>,
    pub(crate) reader: StoreReader,
    pub(crate) page_index: Arc<PageIndex>,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) logs: Logs,
    pub(crate) measuring: Measuring,
    pub(crate) alarm: Alarm,
}

/// The number of runners that serve all projects, if the state is from before there were users.
pub(crate) fn runners_before_users(world: &World) -> Option<usize> {
    let is_older = world.user(UserId::OWNER).is_none() && world.tokens().next().is_some();
    let serving_all = || world.runners().filter(|runner| runner.projects.is_all());
    is_older.then(|| serving_all().count())
}

impl State {
    /// Decides a command, and returns once its changes are durable.
    pub async fn submit<C: Command>(&self, command: C) -> Result<C::Answer, SubmitError> {
        self.submit_with(command, None, |_, _| ()).await
    }

    /// A handle for one request of a person: each commit through it has a line in the audit log.
    #[must_use]
    pub fn audited(&self, entry: AuditEntry) -> Self {
        self.with_audit(Audited::Request(entry))
    }

    /// A handle for the claim of a runner: its commit has a line in the audit log if the job gets secrets.
    #[must_use]
    pub fn audited_claim(&self, entry: AuditEntry) -> Self {
        self.with_audit(Audited::Claim(entry))
    }

    /// A handle for one request: each of its decisions checks the rights of the caller.
    #[must_use]
    pub fn guarded(&self, guard: Arc<Guard>) -> Self {
        Self {
            guard: Some(guard),
            ..self.clone()
        }
    }

    fn with_audit(&self, audited: Audited) -> Self {
        Self {
            audited: Some(Arc::new(audited)),
            ..self.clone()
        }
    }

    /// Writes lines about actions that change no record to the audit log.
    pub async fn note(&self, lines: Vec<(AuditEntry, AuditAction)>) -> Result<(), SubmitError> {
        let noting = self.with_audit(Audited::Lines(lines));
        noting.submit(NoChange).await
    }

    /// Writes a line for the request of [`Self::audited`] to the audit log. Without a request it does nothing.
    pub async fn note_request(&self, action: AuditAction) -> Result<(), SubmitError> {
        match self.audited.as_deref() {
            Some(Audited::Request(entry)) => self.note(vec![(entry.clone(), action)]).await,
            Some(Audited::Claim(_) | Audited::Lines(_)) | None => Ok(()),
        }
    }

    /// Lines of the audit log from a place on, newest first.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        from: Option<DayPlace>,
        limit: usize,
    ) -> Result<DayPage<AuditRecord>, ReadError> {
        audit::page(self.reader(), filter, from, limit).await
    }

    /// Events of a span that a filter accepts, newest first.
    pub async fn events(
        &self,
        span: (Option<Timestamp>, Option<Timestamp>),
        takes: impl Fn(&Event) -> bool,
        limit: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let page = day_page(self.reader(), span, takes, None, limit).await?;
        Ok(page.records)
    }

    /// Lines of the delivery log that a filter accepts, from a place on, newest first.
    pub async fn deliveries(
        &self,
        span: (Option<Timestamp>, Option<Timestamp>),
        takes: impl Fn(&DeliveryRecord) -> bool,
        from: Option<DayPlace>,
        limit: usize,
    ) -> Result<DayPage<DeliveryRecord>, ReadError> {
        day_page(self.reader(), span, takes, from, limit).await
    }

    /// Like [`Self::submit`], with an attachment that becomes durable in the same commit. `rewritten` is the record of
    /// a finished job, if the command changes one.
    pub(crate) async fn submit_with<C: Command>(
        &self,
        command: C,
        rewritten: Option<Rewritten>,
        attachment: impl Fn(&Decision<C::Answer>, &mut Batch) + Send + 'static,
    ) -> Result<C::Answer, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let submission = Submission {
            command,
            attachment: Box::new(attachment),
            rewritten,
            audited: self.audited.clone(),
            guard: self.guard.clone(),
            reply,
        };
        if self.queue.send(Box::new(submission)).await.is_err() {
            return Err(SubmitError::OutcomeUnknown);
        }
        answer.await.unwrap_or(Err(SubmitError::OutcomeUnknown))
    }

    /// Makes the owner, unless there is one, and the first admin token in a state that never had a token. A state with
    /// damaged tokens already had tokens: damaging a file must not make anybody admin.
    pub async fn make_owner(&self, secret: PlainToken) -> Result<(), PayloadError> {
        if self.has_lost_users() {
            tracing::error!(
                "records of users are in quarantine/users: restore them to users/ from a backup, or empty that folder and \
                 start again"
            );
            return Ok(());
        }
        self.make_first_user().await?;
        if self.read(|world| world.tokens().next().is_some()) {
            return Ok(());
        }
        if self.shared.has_lost_tokens {
            tracing::error!(
                "there is no token, and no first token is made, because records of tokens are in quarantine/tokens: \
                 restore them to tokens/ from a backup, or empty that folder and start again for a first token"
            );
            return Ok(());
        }
        self.store_first_token(&secret).await
    }

    /// Makes the owner, unless there is one.
    pub(crate) async fn make_first_user(&self) -> Result<(), SubmitError> {
        let runners = self.read(runners_before_users);
        self.submit(MakeOwner).await?;
        if let Some(runners) = runners {
            let owner = self.read(|world| Some(world.user(UserId::OWNER)?.name.to_string()));
            tracing::warn!(
                owner,
                runners,
                "this state has users from now on: all its tokens belong to the owner, and its runners serve all projects until `everscan runner limit`. Newer runners give their own SERVICE_TOKEN to steps only with `--pass-token`"
            );
        }
        Ok(())
    }

    /// Whether records of users are set aside, so that the owner may be among them.
    pub(crate) fn has_lost_users(&self) -> bool {
        self.shared.has_lost_users
    }

    /// Waits until every committed change is in the files that other programs read. Files are written shortly after
    /// their commit.
    pub async fn settled(&self) -> Result<(), ReadError> {
        self.shared.reader.settled().await
    }

    /// Reads the published world. `look` must be quick: publishing waits for it.
    pub fn read<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        self.shared.publication.read(look)
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Wakes whenever the published world has changed.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.shared.publication.changed()
    }

    /// Wakes whenever this job has changed.
    pub fn job_changed(&self, job: JobId) -> watch::Receiver<()> {
        self.shared.publication.job_changed(job)
    }

    /// Wakes whenever this user, or a token or session of this user, has changed or ended.
    pub fn user_changed(&self, user: UserId) -> watch::Receiver<()> {
        self.shared.publication.user_changed(user)
    }

    /// Follows the commits after `from`. Call [`Self::seq`] before reading the world: the world then has all changes up
    /// to this number. The subscription may repeat later changes, which is harmless.
    pub fn subscribe(&self, from: Seq) -> Result<Subscription, ChangesGone> {
        self.shared.publication.subscribe(from)
    }

    /// The newest commit that is published.
    pub fn seq(&self) -> Seq {
        self.shared.publication.seq()
    }

    /// Calls `observe` with the measurements of every commit. It must be quick. Only the first call has an effect.
    pub fn measure_commits(&self, observe: Box<dyn Fn(&CommitMeasure) + Send + Sync>) {
        if self.shared.measuring.set(observe).is_err() {
            tracing::debug!("commits are measured already");
        }
    }

    /// Waits for a failure after which the process must end: of a commit, a sync, or the committer itself.
    pub async fn failed(&self) -> Fatal {
        self.shared.alarm.rung().await
    }

    /// A job, unfinished or finished.
    pub async fn job(&self, id: JobId) -> Result<Option<Arc<Job>>, ReadError> {
        match self.read(|world| world.job(id).cloned()) {
            Some(job) => Ok(Some(job)),
            None => settled_job(&self.shared.reader, id).await,
        }
    }

    /// Jobs, newest first, made before the given one.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<JobPage, ReadError> {
        let listing = self.read(|world| Listing::of(world, filter, before, limit));
        let (reader, index) = (&self.shared.reader, &self.shared.page_index);
        listing
            .page(reader, index, filter, before, limit, FRUITLESS_PIECES)
            .await
    }

    /// The ids of the newest finished jobs of these projects, newest first. Some may have been removed: only the histories
    /// are read.
    pub async fn newest_finished(
        &self,
        projects: &Projects,
        limit: usize,
    ) -> Result<Vec<JobId>, ReadError> {
        let filter = JobFilter {
            projects: projects.clone(),
            ..JobFilter::default()
        };
        let listing = self.read(|world| Listing::of(world, &filter, None, 0));
        let (reader, index) = (&self.shared.reader, &self.shared.page_index);
        listing.finished(reader, index, limit).await
    }

    /// The newest records of a scan's ledger up to time `until` and before the place `before`, newest first.
    pub async fn ledger(
        &self,
        scan: &ScanKey,
        until: Option<Timestamp>,
        before: Option<Position>,
        limit: usize,
    ) -> Result<Ledger, ReadError> {
        let reader = &self.shared.reader;
        match self.read(|world| world.head(scan).cloned()) {
            Some(head) => crate::ledger::newest(reader, &head, until, before, limit).await,
            None => Ok(Ledger::default()),
        }
    }

    /// The newest finished jobs of the scans whose histories are not in the world. Unreadable histories are skipped.
    pub async fn recent_jobs(&self, scans: BTreeSet<ScanKey>) -> BTreeMap<ScanKey, Arc<Recent>> {
        let unread: Vec<_> = self.read(|world| {
            let unread = scans
                .into_iter()
                .filter(|scan| world.recent(scan).is_none());
            let with_past = |scan: ScanKey| {
                let head = world.head(&scan);
                (head.map(|head| KnownPast::of(world, head)), scan)
            };
            unread.map(with_past).collect()
        });
        let mut read = BTreeMap::new();
        for (past, scan) in unread {
            let recent = match &past {
                Some(past) => recent(&self.shared.reader, past).await,
                None => Ok(Recent::default()),
            };
            match recent {
                Ok(recent) => drop(read.insert(scan, Arc::new(recent))),
                Err(error) => {
                    tracing::error!(scan = %scan.scan, %error, "a scan's history cannot be read");
                }
            }
        }
        read
    }

    /// The revision that removed the scan from its workflow, if it is among the newest revisions.
    pub async fn removed_by(&self, scan: &ScanKey) -> Result<Option<RevisionRef>, ReadError> {
        crate::scan_places::removed_by(&self.shared.reader, scan).await
    }

    /// Large objects and growing files: artifacts, inputs, texts of workflows, logs.
    pub(crate) fn volume(&self) -> &Arc<dyn Volume> {
        &self.shared.volume
    }

    /// How full the disk is. At most once per second this blocks for a system call.
    pub fn room(&self) -> Room {
        room(&*self.shared.volume)
    }

    /// The size of the disk, measured together with [`Self::room`]. `None` if it cannot be measured.
    pub fn disk_bytes(&self) -> Option<DiskBytes> {
        self.shared.volume.disk_bytes().unwrap_or(None)
    }

    /// When the newest backup was made. This reads a small file.
    pub fn newest_backup(&self) -> Option<Timestamp> {
        let newest = self.shared.volume.newest_backup();
        let newest = newest.inspect_err(|error| {
            tracing::warn!(%error, "the record of the newest backup cannot be read");
        });
        Timestamp::from_timestamp(i64::try_from(newest.ok()??).ok()?, 0)
    }

    /// The last commit when the state was opened. For a restored backup this is the last commit of the backup.
    pub fn found(&self) -> Seq {
        self.shared.found
    }

    pub fn logs(&self) -> &Logs {
        &self.shared.logs
    }

    pub(crate) fn reader(&self) -> &StoreReader {
        &self.shared.reader
    }

    pub(crate) fn alarm(&self) -> &Alarm {
        &self.shared.alarm
    }
}
