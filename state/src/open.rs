//! Opens the state folder: loads the world, replaces damaged records, and starts the committer.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use chrono::TimeDelta;
use model::limits::CYCLE_PAUSE;
use model::{Change, Clock, Entropy, World};
use store::file::FileEngine;
use store::{Engine, Room};
use tokio::sync::mpsc;

use crate::alarm::Alarm;
use crate::committer::{Committer, Histories};
use crate::error::{CloseError, OpenError};
use crate::layout::Folders;
use crate::limits::WAITING_COMMANDS;
use crate::load::{Loaded, Loading};
use crate::log::{self, Logs};
use crate::measure::Measuring;
use crate::page_index::PageIndex;
use crate::publication::Publication;
use crate::reader::StoreReader;
use crate::rebuilt;
use crate::state::{Shared, State};
use crate::tails::Tails;
use crate::written::Written;

/// The options and services that the state needs.
pub struct Options {
    pub root: PathBuf,
    /// Whether the folder may be on another machine's file system.
    pub allow_network: bool,
    pub clock: Arc<dyn Clock>,
    /// Randomness for ids and tokens.
    pub entropy: Box<dyn Entropy>,
    /// How long jobs of scans that trigger each other wait from the second lap on.
    pub cycle_pause: TimeDelta,
}

/// An open state and its committer. Nothing changes until the committer runs.
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
    /// Waits until all decisions are committed and the store is closed. Blocks.
    pub fn join(self) -> Result<(), CloseError> {
        self.thread.join().map_err(|_| CloseError::Panicked)??;
        // A log may have failed to sync while nobody waited for it.
        self.alarm
            .first()
            .map_or(Ok(()), |fatal| Err(CloseError::Failed(fatal)))
    }
}

impl State {
    /// Opens the state folder. Creates it if it is missing or empty.
    pub async fn open(options: Options) -> Result<(Self, Closing), OpenError> {
        let of_store = store::file::Options {
            allow_network: options.allow_network,
            ..store::file::Options::default()
        };
        Self::open_with(options, of_store).await
    }

    /// Like `open`, with options of the store.
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

    /// Opens the state with any engine. The caller runs the committer.
    pub(crate) async fn open_on<E: Engine>(
        mut engine: E,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Opened<E>, OpenError> {
        let mut loading = Loading::default();
        let (epoch, last) = engine.open(&mut |records| loading.take(records)).await?;
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
        let has_lost_users = engine
            .has_set_aside(&Folders::users())
            .await
            .map_err(store::OpenError::from)?;
        let tails = Tails::read(&reader).await?;
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
            tails_committed: tails.clone(),
            tails,
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
            has_lost_users,
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
                guard: None,
            },
            committer,
            is_restored,
        })
    }
}

/// Rebuilds retention records that were set aside and not replaced, if their histories can be read. Without them all
/// removed jobs would count as present, and retention would remove too many other jobs.
async fn restore_retention<E: Engine>(engine: &E, reader: &StoreReader, world: &mut World) {
    // The quarantine is usually empty. Then one check is enough for all scans.
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
