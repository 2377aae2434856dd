//! The one committer: a thread that decides, commits, publishes and answers, in this order.
//!
//! Each command is decided against *pending* state: the published state plus the decisions since. Commands that wait
//! while a commit is being synced share the next commit. A decision is never split across batches. A full disk undoes
//! all decisions that are not committed. When the store refuses a batch because of its content, its commands are
//! decided again, each in a commit of its own, so that only the faulty command is refused. A command whose decision
//! panics is refused as well: decisions only read pending state. When a commit fails in any other way, or other code
//! panics, nothing more is decided and the process must end.

mod histories;
mod round;
mod submission;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread;

use chrono::TimeDelta;
use model::{Clock, Entropy, JobId, Moment, Order, ScanKey, World, error_chain};
use store::volume::Volume;
use store::{CloseError, CommitError, Engine, Room, failpoint};
use tokio::sync::mpsc;
use tokio::time::Instant;
use workflow::Sandbox;

pub(crate) use self::histories::Histories;
use self::round::Round;
use self::submission::{Decided, Deciding, Submitted, Unanswered};
pub(crate) use self::submission::{Submission, Waiting};
use crate::alarm::Alarm;
use crate::blocking::room;
use crate::error::SubmitError;
use crate::limits::ROUND_COMMANDS;
use crate::measure::{CommitMeasure, Measuring};
use crate::publication::Publication;
use crate::tails::Tails;
use crate::written::{Keys, Written};

pub(crate) struct Committer<E: Engine> {
    pub(crate) engine: E,
    pub(crate) written: Written,
    pub(crate) pending: World,
    pub(crate) order: Order,
    pub(crate) publication: Arc<Publication>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Box<dyn Entropy>,
    /// Where the ledgers of days end, including decisions that are not committed yet.
    pub(crate) tails: Tails,
    /// Where they end on disk.
    pub(crate) tails_committed: Tails,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) last_room: Room,
    /// How long jobs of scans that trigger each other wait from the second lap on.
    pub(crate) cycle_pause: TimeDelta,
    /// Histories that decisions need.
    pub(crate) histories: Histories,
    pub(crate) queue: mpsc::Receiver<Waiting>,
    /// Commands whose decisions were undone. Each is decided again in a commit of its own, before other commands.
    pub(crate) again: VecDeque<Waiting>,
    /// Returns the length of a job's log in bytes.
    pub(crate) log_bytes: Box<dyn Fn(JobId) -> u64 + Send>,
    /// Whether every sender of the queue was dropped.
    pub(crate) is_closing: bool,
    pub(crate) measuring: Measuring,
    pub(crate) alarm: Alarm,
}

/// The next command to decide.
enum Next {
    /// Its histories may be unread.
    New(Waiting),
    /// It has waited for its histories.
    Ready(Waiting),
}

impl<E: Engine> Committer<E> {
    /// Runs on a thread of its own.
    pub(crate) fn start(self) -> io::Result<thread::JoinHandle<Result<(), CloseError>>> {
        // Timers and sockets stay disabled. So a command wakes the thread with a single system call.
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || runtime.block_on(self.run()))
    }

    /// Decides and commits until every sender of the queue is dropped, or until a commit fails. Closes the engine once
    /// nobody holds the state any more.
    pub(crate) async fn run(mut self) -> Result<(), CloseError> {
        let _watchdog = Watchdog(self.alarm.clone());
        self.work().await;
        let Self {
            mut queue,
            again,
            histories,
            engine,
            ..
        } = self;
        // After a failure nothing more is decided. Other tasks may still write outside the journal, so the engine keeps
        // the lock of the state until nobody holds the state any more.
        drop((again, histories));
        while let Some(waiting) = queue.recv().await {
            drop(waiting);
        }
        engine.close().await
    }

    async fn work(&mut self) {
        while let Some(first) = self.next().await {
            let mut round = Round::new(self.written.epoch);
            let mut next = Some(first);
            let room = self.check_room();
            while let Some(next_command) = next.take() {
                let command = match next_command {
                    Next::Ready(command) => command,
                    Next::New(command) => match self.unknown_histories(&*command) {
                        Err(error) => {
                            command.refuse(error);
                            next = self.more(&round);
                            continue;
                        }
                        Ok(unknown) if unknown.is_empty() => command,
                        Ok(unknown) => {
                            // The earlier decisions must be committed before the histories are read.
                            let before =
                                std::mem::replace(&mut round, Round::new(self.written.epoch));
                            match self.commit(before).await {
                                Outcome::Committed | Outcome::Undone(_) => {}
                                Outcome::Failed => return,
                            }
                            self.histories.wait(unknown, command, &self.pending);
                            next = self.more(&round);
                            continue;
                        }
                    },
                };
                let begun = Instant::now();
                let decided = self.decide(command, room);
                round.deciding += begun.elapsed();
                if !round.batch.fits(&decided.batch) {
                    let full = std::mem::replace(&mut round, Round::new(self.written.epoch));
                    match self.commit(full).await {
                        Outcome::Committed => {
                            let decided = decided.sealed_again(self.written.encoder(&self.pending));
                            self.take(&mut round, decided);
                        }
                        // The decision depends on changes that have just been undone.
                        Outcome::Undone(Undo::DiskFull) => {
                            decided.command.answer(Err(SubmitError::DiskFull));
                        }
                        Outcome::Undone(Undo::Contradicted) => {
                            self.again.push_back(decided.command.again());
                        }
                        Outcome::Failed => {
                            return decided.command.answer(Err(SubmitError::OutcomeUnknown));
                        }
                    }
                } else {
                    self.take(&mut round, decided);
                }
                next = self.more(&round);
            }
            match self.commit(round).await {
                Outcome::Committed | Outcome::Undone(_) => {}
                Outcome::Failed => return,
            }
        }
    }

    /// Another command for the round.
    fn more(&mut self, round: &Round) -> Option<Next> {
        let has_room = self.again.is_empty() && round.commands.len() < ROUND_COMMANDS;
        let command = has_room.then(|| self.queue.try_recv().ok()).flatten();
        command.map(Next::New)
    }

    /// The next command. `None` if no more can come. Call this only when all decisions are committed.
    async fn next(&mut self) -> Option<Next> {
        loop {
            if let Some(command) = self.again.pop_front() {
                return Some(Next::New(command));
            }
            if let Some(command) = self.histories.ready() {
                return Some(Next::Ready(command));
            }
            tokio::select! {
                biased;
                learnt = self.histories.read(), if !self.histories.are_read() => {
                    for change in &learnt {
                        self.pending.apply(change);
                    }
                    self.publication.publish(None, learnt);
                }
                asked = self.queue.recv(), if !self.is_closing => match asked {
                    Some(command) => return Some(Next::New(command)),
                    None => self.is_closing = true,
                },
                else => return None,
            }
        }
    }

    /// How full the disk is. Logs when this changes.
    fn check_room(&mut self) -> Room {
        let room = room(&*self.volume);
        if room != self.last_room {
            match room {
                Room::Enough => tracing::info!("the disk of the state has room again"),
                Room::Low => tracing::warn!(
                    "the disk of the state is getting full: no new jobs are taken until there is room"
                ),
                Room::Full => tracing::error!(
                    "the disk of the state is full: only running jobs are finished until there is room"
                ),
            }
            self.last_room = room;
        }
        room
    }

    /// The scans whose finished jobs the command needs but that are not in memory yet.
    fn unknown_histories(&self, command: &dyn Submitted) -> Result<BTreeSet<ScanKey>, SubmitError> {
        let mut scans = command.histories(&self.pending)?;
        scans.retain(|scan| self.pending.recent(scan).is_none());
        Ok(scans)
    }

    fn decide(&mut self, command: Waiting, room: Room) -> Decided {
        self.order = self.order.next();
        let mut moment = Moment {
            now: self.clock.now(),
            steady: self.pending.time(self.clock.steady()),
            order: self.order,
            entropy: &mut *self.entropy,
            sandbox: Sandbox::shared(),
            log_bytes: &*self.log_bytes,
            may_make_jobs: room == Room::Enough,
            cycle_pause: self.cycle_pause,
        };
        command.decide(
            &Deciding {
                world: &self.pending,
                encoder: self.written.encoder(&self.pending),
                tails: &self.tails,
                room,
            },
            &mut moment,
        )
    }

    fn take(&mut self, round: &mut Round, decided: Decided) {
        for change in &decided.changes {
            self.pending.apply(change);
        }
        if let Some(tails) = &decided.tails {
            self.tails = tails.clone();
        }
        round.add(decided);
    }

    /// Goes back to the published state. If the disk is full, every command of the round is refused. If the batch
    /// contradicts the files, a single command is refused, and several commands are decided again one by one.
    fn undo(&mut self, commands: Vec<Box<dyn Unanswered>>, undo: Undo) -> Outcome {
        self.pending = self.publication.read(World::clone);
        self.tails = self.tails_committed.clone();
        match undo {
            Undo::DiskFull => {
                for command in commands {
                    command.answer(Err(SubmitError::DiskFull));
                }
            }
            Undo::Contradicted if commands.len() == 1 => {
                for command in commands {
                    command.answer(Err(SubmitError::Contradicted));
                }
            }
            Undo::Contradicted => {
                let again = commands.into_iter().map(|command| command.again());
                self.again.extend(again);
            }
        }
        Outcome::Undone(undo)
    }

    async fn commit(&mut self, round: Round) -> Outcome {
        let committed = if round.batch.is_empty() {
            Ok(None)
        } else {
            let keys = Keys::of(&round.batch);
            let (bytes, begun) = (round.batch.bytes(), Instant::now());
            let committed = self.engine.commit(round.batch).await;
            committed.map(|seq| {
                if let Some(observe) = self.measuring.get() {
                    observe(&CommitMeasure {
                        commands: round.commands.len(),
                        bytes,
                        deciding: round.deciding,
                        took: begun.elapsed(),
                    });
                }
                self.written.committed(seq, keys);
                Some(seq)
            })
        };
        match committed {
            Ok(seq) => {
                if let Some(tails) = round.tails {
                    self.tails_committed = tails;
                }
                self.histories.committed(&round.changes);
                self.publication.publish(seq, round.changes);
                failpoint::reach("commit-published");
                for command in round.commands {
                    command.answer(Ok(()));
                }
                Outcome::Committed
            }
            Err(CommitError::Full) => self.undo(round.commands, Undo::DiskFull),
            Err(error @ (CommitError::TooLarge { .. } | CommitError::Invalid(_))) => {
                tracing::error!(
                    error = error_chain(&error),
                    "the store refused a commit and is unchanged"
                );
                self.undo(round.commands, Undo::Contradicted)
            }
            Err(error @ (CommitError::Fenced { .. } | CommitError::Unknown { .. })) => {
                self.alarm.ring(&error);
                for command in round.commands {
                    command.answer(Err(SubmitError::OutcomeUnknown));
                }
                Outcome::Failed
            }
        }
    }
}

/// Why a round was not stored, when the store still works.
#[derive(Debug, Clone, Copy)]
enum Undo {
    DiskFull,
    /// The changes do not fit the files: somebody removed or changed one.
    Contradicted,
}

enum Outcome {
    Committed,
    /// Nothing was stored, and the pending state is the published state again.
    Undone(Undo),
    /// Nothing more may be decided.
    Failed,
}

/// Rings when the thread panics. Otherwise nobody would notice before the next command.
struct Watchdog(Alarm);

impl Drop for Watchdog {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.ring_with("the committer thread panicked".to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
