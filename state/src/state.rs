//! The handle through which everything reads and changes the state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use chrono::TimeDelta;
use model::decide::{Command, Decision};
use model::limits::CYCLE_PAUSE;
use model::retention::Position;
use model::{
    Change, Clock, Entropy, Job, JobId, PlainToken, Projects, Recent, RevisionRef, ScanKey,
    Timestamp, TokenId, World,
};
use store::file::FileEngine;
use store::volume::Volume;
use store::{Batch, DiskBytes, Engine, Room, Seq};
use tokio::sync::{mpsc, oneshot, watch};

use crate::alarm::Alarm;
use crate::audit::{AuditTail, Audited};
use crate::committer::{Committer, Histories, Submission, Waiting};
use crate::error::{CloseError, Fatal, OpenError, PayloadError, ReadError, SubmitError};
use crate::feed::{ChangesGone, Subscription};
use crate::history::KnownPast;
use crate::jobs::{JobFilter, JobPage, Listing, settled_job};
use crate::layout::Folders;
use crate::ledger::Ledger;
use crate::limits::{FRUITLESS_PIECES, WAITING_COMMANDS};
use crate::load::{Loaded, Loading};
use crate::log::{self, Logs};
use crate::measure::{CommitMeasure, Measuring};
use crate::page_index::PageIndex;
use crate::publication::Publication;
use crate::reader::StoreReader;
use crate::rebuilt;
use crate::recent::recent;
use crate::upload::room;
use crate::written::{Rewritten, Written};

/// What the state needs from outside.
pub struct Options {
    /// The state folder.
    pub root: PathBuf,
    /// Whether the folder may be on another machine's file system.
    pub allow_network: bool,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for ids and tokens.
    pub entropy: Box<dyn Entropy>,
    /// What jobs of scans that wake each other wait from the second lap on.
    pub cycle_pause: TimeDelta,
}

/// The state of the service. Cheap to clone.
#[derive(Clone)]
pub struct State {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Waiting>,
    /// What the audit log gets with each command, if a person asked for it.
    audited: Option<Arc<Audited>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    /// The last commit that was there when the state was opened.
    found: Seq,
    /// Whether a token's record is in quarantine.
    has_lost_tokens: bool,
    publication: Arc<Publication>,
    reader: StoreReader,
    page_index: Arc<PageIndex>,
    volume: Arc<dyn Volume>,
    logs: Logs,
    measuring: Measuring,
    alarm: Alarm,
}

/// Rebuilds retention records that were set aside and that nobody has replaced, as far as their histories can be read.
/// Without them all removed jobs would count as present, and retention would remove others in their place.
async fn restore_retention<E: Engine>(engine: &E, reader: &StoreReader, world: &mut World) {
    // Mostly there is nothing in the quarantine. Then a start costs one look, and not one for each scan.
    if let Ok(false) = engine.has_set_aside(&Folders::workflows()).await {
        return;
    }
    let heads = world.heads().cloned();
    let without: Vec<_> = heads
        .filter(|head| world.retention(&head.key()).is_none())
        .collect();
    for head in without {
        let scan = head.key();
        match engine.has_set_aside(&Folders::retention(&scan)).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tracing::error!(%error, "the quarantine cannot be read");
                return;
            }
        }
        match rebuilt::retention_after_loss(reader, &head).await {
            Ok(retention) => world.apply(&Change::Retention(Arc::new(retention))),
            Err(error) => {
                tracing::error!(scan = %scan.scan, %error, "a scan's history cannot be read");
            }
        }
    }
}

/// An open state, and its committer. Nothing changes until the committer runs.
pub(crate) struct Opened<E: Engine> {
    pub(crate) state: State,
    pub(crate) committer: Committer<E>,
    /// Whether [`State::settle_restored`] has work to do.
    pub(crate) is_restored: bool,
}

/// The committer's thread. It ends once every [`State`] is dropped, and closes the store.
#[must_use]
pub struct Closing {
    thread: JoinHandle<Result<(), store::CloseError>>,
    alarm: Alarm,
}

impl Closing {
    /// Waits until everything decided is committed and the store is closed. Blocks.
    pub fn join(self) -> Result<(), CloseError> {
        self.thread.join().map_err(|_| CloseError::Panicked)??;
        // A log may have failed to sync while nobody waited for it.
        self.alarm
            .first()
            .map_or(Ok(()), |fatal| Err(CloseError::Failed(fatal)))
    }
}

impl State {
    /// Opens the state folder, making it when it is missing or empty.
    pub async fn open(options: Options) -> Result<(Self, Closing), OpenError> {
        let of_store = store::file::Options {
            allow_network: options.allow_network,
            ..store::file::Options::default()
        };
        Self::open_with(options, of_store).await
    }

    /// The same with other options of the store.
    pub(crate) async fn open_with(
        options: Options,
        of_store: store::file::Options,
    ) -> Result<(Self, Closing), OpenError> {
        let engine = FileEngine::new(options.root, of_store);
        let opened = Self::open_on(engine, options.clock, options.entropy).await?;
        let Opened {
            state,
            mut committer,
            is_restored,
        } = opened;
        committer.cycle_pause = options.cycle_pause;
        let thread = committer.start().map_err(OpenError::Thread)?;
        if is_restored {
            state.settle_restored().await?;
        }
        let alarm = state.alarm().clone();
        Ok((state, Closing { thread, alarm }))
    }

    /// Opens the state of any engine. The caller runs the committer.
    pub(crate) async fn open_on<E: Engine>(
        mut engine: E,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Opened<E>, OpenError> {
        let mut loading = Loading::default();
        let (epoch, last) = engine
            .open(&mut |key, bytes| loading.take(&key, &bytes))
            .await?;
        let reader = StoreReader::new(engine.reader());
        let volume = engine.volume();
        let is_restored = engine.is_restored();
        let Loaded {
            mut world,
            revisions,
            damaged,
        } = loading.finish(&reader, clock.now(), last).await?;
        let mut written = Written::until(epoch, last, revisions);
        for record in damaged {
            record.put_aside(&mut engine, &mut written, &world).await?;
        }
        restore_retention(&engine, &reader, &mut world).await;
        let has_lost_tokens = engine
            .has_set_aside(&Folders::tokens())
            .await
            .map_err(store::OpenError::from)?;
        let audit = AuditTail::read(&reader).await?;
        let page_index: Arc<PageIndex> = Arc::default();
        let publication = Arc::new(Publication::new(
            world.clone(),
            last,
            reader.ended_jobs().clone(),
            page_index.clone(),
        ));
        let (queue, waiting) = mpsc::channel(WAITING_COMMANDS);
        let alarm = Alarm::new();
        let measuring = Measuring::default();
        let committer = Committer {
            order: world.latest_order(),
            pending: world,
            engine,
            written,
            publication: publication.clone(),
            clock: clock.clone(),
            entropy,
            audit_committed: audit.clone(),
            audit,
            volume: volume.clone(),
            last_room: Room::Enough,
            cycle_pause: CYCLE_PAUSE,
            histories: Histories::new(Arc::new(reader.clone())),
            queue: waiting,
            again: VecDeque::new(),
            log_bytes: log::lengths(volume.clone()),
            is_closing: false,
            measuring: measuring.clone(),
            alarm: alarm.clone(),
        };
        let logs = Logs::new(
            volume.clone(),
            publication.clone(),
            alarm.clone(),
            reader.warned().clone(),
        );
        let shared = Arc::new(Shared {
            clock,
            found: last,
            has_lost_tokens,
            publication,
            reader,
            page_index,
            volume,
            logs,
            measuring,
            alarm,
        });
        Ok(Opened {
            state: Self {
                shared,
                queue,
                audited: None,
            },
            committer,
            is_restored,
        })
    }

    /// Decides a command, and answers once its changes are durable.
    pub async fn submit<C: Command>(&self, command: C) -> Result<C::Answer, SubmitError> {
        self.submit_with(command, None, |_, _| ()).await
    }

    /// What the audit log gets with each command.
    pub(crate) fn served(&self) -> Option<&Audited> {
        self.audited.as_deref()
    }

    /// The same state, with this for the audit log.
    pub(crate) fn serving(&self, audited: Arc<Audited>) -> Self {
        Self {
            audited: Some(audited),
            ..self.clone()
        }
    }

    /// The same with an attachment, which becomes durable in the same commit, or for a command that changes the record of a
    /// finished job.
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
            reply,
        };
        if self.queue.send(Box::new(submission)).await.is_err() {
            return Err(SubmitError::OutcomeUnknown);
        }
        answer.await.unwrap_or(Err(SubmitError::OutcomeUnknown))
    }

    /// Makes the first admin token in a state that never had a token. A state with damaged tokens has had some: damaging a
    /// file must not make anybody admin.
    pub async fn make_first_token(&self, secret: PlainToken) -> Result<(), PayloadError> {
        if self.read(|world| world.tokens().next().is_some()) {
            return Ok(());
        }
        if self.shared.has_lost_tokens {
            tracing::error!(
                "there is no token, and no first one is made, since records of tokens are in quarantine/tokens: \
                 restore them to tokens/ from a backup, or empty that folder and start again for a first token"
            );
            return Ok(());
        }
        self.store_first_token(&secret).await
    }

    /// Waits until every change answered so far is in the files that other programs read. Files follow their commit by a
    /// moment.
    pub async fn settled(&self) -> Result<(), ReadError> {
        self.shared.reader.settled().await
    }

    /// Reads the published world. `look` must be short: publishing waits for it.
    pub fn read<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        self.shared.publication.read(look)
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Wakes whenever the published world has changed.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.shared.publication.changed()
    }

    /// Wakes whenever a job has changed, and for no other.
    pub fn job_changed(&self, job: JobId) -> watch::Receiver<()> {
        self.shared.publication.job_changed(job)
    }

    /// Wakes whenever a token has changed or was removed, and for no other.
    pub fn token_changed(&self, token: TokenId) -> watch::Receiver<()> {
        self.shared.publication.token_changed(token)
    }

    /// Follows what is committed after `from`. Ask for [`Self::seq`] first and read the world then: it has all changes up to
    /// there. A change that comes again is harmless.
    pub fn subscribe(&self, from: Seq) -> Result<Subscription, ChangesGone> {
        self.shared.publication.subscribe(from)
    }

    /// The newest commit that is published.
    pub fn seq(&self) -> Seq {
        self.shared.publication.seq()
    }

    /// Gives the measures of every commit to `observe`, which must be quick. Only the first call counts.
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

    /// The newest records of a scan's ledger that are not later than `until` and stand before the place `before`, newest
    /// first.
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

    /// The newest finished jobs of those scans whose histories are not in the world. Histories that cannot be read are left
    /// out.
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

    /// The revision that removed the scan from its workflow, if it is among the newest ones.
    pub async fn removed_by(&self, scan: &ScanKey) -> Result<Option<RevisionRef>, ReadError> {
        crate::scan_places::removed_by(&self.shared.reader, scan).await
    }

    /// Large objects and growing files: artifacts, inputs, texts of workflows, logs.
    pub(crate) fn volume(&self) -> &Arc<dyn Volume> {
        &self.shared.volume
    }

    /// How full the disk is. Blocks for one system call, at most every second.
    pub fn room(&self) -> Room {
        room(&*self.shared.volume)
    }

    /// How large the disk is, as old as the room. None if it cannot be measured. Blocks likewise.
    pub fn disk_bytes(&self) -> Option<DiskBytes> {
        self.shared.volume.disk_bytes().unwrap_or(None)
    }

    /// The last commit that this opening found. For a restored backup it is the last change in it.
    pub fn found(&self) -> Seq {
        self.shared.found
    }

    /// Job logs.
    pub fn logs(&self) -> &Logs {
        &self.shared.logs
    }

    /// Small files of the store.
    pub(crate) fn reader(&self) -> &StoreReader {
        &self.shared.reader
    }

    pub(crate) fn alarm(&self) -> &Alarm {
        &self.shared.alarm
    }
}
