//! One pass over the finished jobs of a workflow, oldest first.

use model::decide::{Chosen, ChosenFate, Prune, Pruned};
use model::limits::{REMOVAL_OPERATIONS, TALKING_JOBS_PASSED};
use model::retention::{
    Backlog, Candidate, Fate, Outlook, Position, Retention, RetentionPolicy, Stay, Stock, choose,
};
use model::{Actor, JobId, Reason, ScanKey, Timestamp, WorkflowId};
use state::ReadError;

use super::{Retained, ScanRetained};
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::JOBS_AHEAD;
use crate::removal::operations;

/// Whether a pass removes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It removes the jobs.
    Remove,
    /// It only counts them.
    DryRun,
}

/// A pass under way.
pub(super) struct Pass {
    handle: Handle,
    policy: RetentionPolicy,
    manner: Manner,
    /// Whether no job is removed by age, because the clock is not trusted.
    age_waits: bool,
    stock: Stock,
    /// Jobs that are subtracted from the totals already and not removed yet.
    going: Stock,
    /// The oldest undecided jobs of each scan.
    backlogs: Vec<Backlog>,
    /// More about each scan, in the same order.
    scans: Vec<OfScan>,
    has_more: bool,
}

struct OfScan {
    /// Up to where its history is loaded.
    read: Position,
    /// Up to where its history has been read, as the world knows.
    from: Position,
    /// The record of removed jobs, as a dry run changes it.
    retention: Retention,
    report: ScanRetained,
}

/// Jobs of one scan that are decided on together.
struct Round {
    jobs: Vec<(Candidate, Fate)>,
    scan: ScanKey,
    from: Position,
}

impl Pass {
    /// Starts a pass. It does not read a history yet.
    pub(super) async fn begin(
        handle: &Handle,
        workflow: WorkflowId,
        policy: RetentionPolicy,
        manner: Manner,
    ) -> Result<Self, RemovalError> {
        let mut pass = Self {
            handle: handle.clone(),
            policy,
            manner,
            age_waits: false,
            stock: Stock::default(),
            going: Stock::default(),
            backlogs: Vec::new(),
            scans: Vec::new(),
            has_more: false,
        };
        handle.state().read(|world| {
            for head in world.heads().filter(|head| head.workflow == workflow) {
                let scan = head.key();
                let retained = world.retained(head);
                let kept = Stock {
                    jobs: retained.jobs(),
                    bytes: retained.bytes,
                };
                pass.stock.jobs += kept.jobs;
                pass.stock.bytes += kept.bytes;
                let known = world.retention(&scan).map(AsRef::as_ref).cloned();
                let retention =
                    known.unwrap_or_else(|| Retention::new(head.workflow, head.scan.clone()));
                let passed = retention.passed_over.clone();
                pass.scans.push(OfScan {
                    read: retention.from,
                    from: retention.from,
                    retention,
                    report: ScanRetained {
                        scan: head.scan.clone(),
                        removed: Pruned::default(),
                        kept,
                        newest_successes: 0,
                        just_ended: 0,
                        unreadable: 0,
                        unfinished: world.unfinished_of(&scan) as u64,
                    },
                });
                pass.backlogs.push(Backlog {
                    room: TALKING_JOBS_PASSED.saturating_sub(passed.len()),
                    protected: head.successes.iter().map(|success| success.job).collect(),
                    queue: passed
                        .into_iter()
                        .map(|job| Candidate { job, end: None })
                        .collect(),
                    is_whole: false,
                    scan,
                });
            }
        });
        Ok(pass)
    }

    /// Removes about `limit` jobs at most. Returns when the next job becomes too old, if that is known.
    pub(super) async fn run(&mut self, limit: usize) -> Result<Option<Timestamp>, RemovalError> {
        let mut looked_at = 0;
        let mut silent: Option<Timestamp> = None;
        loop {
            self.fill().await?;
            let ages = self.handle.ages();
            let now = ages.unwrap_or_else(|| self.handle.now());
            self.age_waits |= ages.is_none() && self.policy.age.is_some();
            let policy = RetentionPolicy {
                age: self.policy.age.filter(|_| !self.age_waits),
                ..self.policy
            };
            let choice = choose(
                &policy,
                now,
                &mut self.stock,
                &mut self.backlogs,
                JOBS_AHEAD,
            );
            looked_at += choice.taken.len();
            for (_, candidate, fate) in &choice.taken {
                if let Fate::PassOver(Stay::JustEnded(until)) = fate {
                    silent = Some(silent.map_or(*until, |silent| silent.min(*until)));
                    self.going.jobs += 1;
                    self.going.bytes += candidate.job.bytes;
                }
            }
            let all_went = self.carry_out(choice.taken).await?;
            match choice.outlook {
                // Some of the chosen jobs were gone already, so others must be removed.
                Outlook::Done(_) if !all_went => {}
                Outlook::Done(next) => return Ok(next.into_iter().chain(silent).min()),
                Outlook::More if looked_at >= limit => {
                    self.has_more = true;
                    return Ok(Some(now));
                }
                Outlook::More => {}
            }
        }
    }

    /// The present totals. Jobs that ended since the pass began are not counted.
    pub(super) const fn stock(&self) -> Stock {
        Stock {
            jobs: self.stock.jobs + self.going.jobs,
            bytes: self.stock.bytes + self.going.bytes,
        }
    }

    pub(super) fn report(self) -> Retained {
        let mut scans: Vec<_> = self.scans.into_iter().map(|scan| scan.report).collect();
        scans.sort_by(|one, other| one.scan.cmp(&other.scan));
        Retained {
            policy: self.policy,
            scans,
            has_more: self.has_more,
            age_waits: self.age_waits,
        }
    }

    /// Loads more jobs for every scan whose jobs are used up.
    async fn fill(&mut self) -> Result<(), RemovalError> {
        if self.policy.age.is_none() && !self.policy.is_exceeded_by(self.stock) {
            // Nothing is removed, so nothing needs to be read.
            self.backlogs
                .iter_mut()
                .for_each(|backlog| backlog.is_whole = true);
        }
        for (backlog, of_scan) in self.backlogs.iter_mut().zip(&mut self.scans) {
            // Jobs that were passed over come first. Only the first read adds them.
            let is_unread =
                of_scan.read == of_scan.from && backlog.queue.iter().all(|it| it.end.is_none());
            if backlog.is_whole || !(backlog.queue.is_empty() || is_unread) {
                continue;
            }
            let state = self.handle.state();
            let found = state.finished_after(&backlog.scan, of_scan.read, JOBS_AHEAD);
            let found = found.await?;
            backlog.is_whole = found.is_whole;
            of_scan.read = found.jobs.last().map_or(of_scan.read, |ahead| ahead.end);
            backlog
                .queue
                .extend(found.jobs.into_iter().map(|ahead| Candidate {
                    job: ahead.job,
                    end: Some(ahead.end),
                }));
        }
        Ok(())
    }

    /// Removes the chosen jobs. False if less was counted as removed than was chosen. The difference is added to the
    /// totals again, and so are the bytes of artifacts that were removed before their jobs.
    async fn carry_out(
        &mut self,
        taken: Vec<(usize, Candidate, Fate)>,
    ) -> Result<bool, RemovalError> {
        let (mut all_chosen, mut all_removed) = (Pruned::default(), Pruned::default());
        let mut by_scan: Vec<Vec<(Candidate, Fate)>> = Vec::new();
        by_scan.resize_with(self.scans.len(), Vec::new);
        for (number, candidate, fate) in taken {
            if let Some(jobs) = by_scan.get_mut(number) {
                jobs.push((candidate, fate));
            }
        }
        let scans = self.backlogs.iter().zip(&mut self.scans).zip(by_scan);
        for ((backlog, of_scan), jobs) in scans.filter(|(_, jobs)| !jobs.is_empty()) {
            for (_, fate) in &jobs {
                match fate {
                    Fate::Remove => {}
                    Fate::PassOver(Stay::NewestSuccess) => of_scan.report.newest_successes += 1,
                    Fate::PassOver(Stay::JustEnded(_)) => of_scan.report.just_ended += 1,
                }
            }
            let chosen = chosen(&jobs);
            let last = jobs.iter().filter_map(|(candidate, _)| candidate.end).max();
            let (removed, unreadable) = match self.manner {
                Manner::DryRun => would_go(&self.handle, &mut of_scan.retention, &jobs).await?,
                Manner::Remove => {
                    let round = Round {
                        jobs,
                        scan: backlog.scan.clone(),
                        from: of_scan.from,
                    };
                    let removal = async move |handle: Handle| round.carry_out(&handle).await;
                    self.handle.alone(removal).await?
                }
            };
            of_scan.from = last.unwrap_or(of_scan.from);
            add(&mut all_chosen, chosen);
            add(&mut all_removed, removed);
            let report = &mut of_scan.report;
            add(&mut report.removed, removed);
            report.unreadable += unreadable;
            report.kept.jobs = report.kept.jobs.saturating_sub(removed.jobs);
            report.kept.bytes = report.kept.bytes.saturating_sub(removed.bytes);
        }
        let still_there = Stock {
            jobs: all_chosen.jobs.saturating_sub(all_removed.jobs),
            bytes: all_chosen.bytes.saturating_sub(all_removed.bytes),
        };
        self.stock.jobs += still_there.jobs;
        self.stock.bytes += still_there.bytes;
        Ok(still_there == Stock::default())
    }
}

impl Round {
    /// Removes the jobs, commit by commit.
    async fn carry_out(self, handle: &Handle) -> Result<(Pruned, u64), RemovalError> {
        let Self { jobs, scan, from } = self;
        let mut all = Pruned::default();
        let mut prune = Prune {
            scan,
            from,
            jobs: Vec::new(),
        };
        let (mut weight, mut unreadable) = (0, 0);
        for (candidate, fate) in jobs {
            let Found {
                fate,
                added,
                freed,
                is_readable,
            } = found(handle, &candidate, fate).await?;
            all.bytes += freed;
            unreadable += u64::from(!is_readable);
            if weight + added > REMOVAL_OPERATIONS {
                let rest = Prune {
                    scan: prune.scan.clone(),
                    from: reached(&prune),
                    jobs: Vec::new(),
                };
                submit(handle, std::mem::replace(&mut prune, rest), &mut all).await?;
                weight = 0;
            }
            weight += added;
            prune.jobs.push(Chosen {
                job: candidate.job,
                end: candidate.end,
                fate,
            });
        }
        submit(handle, prune, &mut all).await?;
        Ok((all, unreadable))
    }
}

/// The chosen jobs. A job that a person deleted may be among them, because only reading its record tells.
fn chosen(jobs: &[(Candidate, Fate)]) -> Pruned {
    let going = jobs.iter().filter(|(_, fate)| *fate == Fate::Remove);
    going.fold(Pruned::default(), |sum, (candidate, _)| Pruned {
        jobs: sum.jobs + 1,
        bytes: sum.bytes + candidate.job.bytes,
    })
}

/// What removing these jobs would count.
async fn would_go(
    handle: &Handle,
    retention: &mut Retention,
    jobs: &[(Candidate, Fate)],
) -> Result<(Pruned, u64), RemovalError> {
    let (mut all, mut unreadable) = (Pruned::default(), 0);
    for (candidate, fate) in jobs {
        let going = &candidate.job;
        let bytes = match (handle.state().job(going.id).await, fate) {
            (Err(ReadError::Damaged { .. }), fate) => {
                unreadable += u64::from(*fate == Fate::Remove);
                continue;
            }
            (Ok(Some(_)), Fate::PassOver(_)) => continue,
            (Err(error), _) => return Err(error.into()),
            (Ok(Some(job)), Fate::Remove) => job.bytes(),
            // It was counted when a person deleted it.
            (Ok(None), _) if candidate.end.is_some() && retention.take_gone_ahead(going.state) => {
                continue;
            }
            (Ok(None), _) => going.bytes,
        };
        add(&mut all, Pruned { jobs: 1, bytes });
    }
    Ok((all, unreadable))
}

fn add(sum: &mut Pruned, more: Pruned) {
    sum.jobs += more.jobs;
    sum.bytes += more.bytes;
}

async fn submit(handle: &Handle, prune: Prune, all: &mut Pruned) -> Result<(), RemovalError> {
    let going = prune.jobs.iter().filter_map(|chosen| match &chosen.fate {
        ChosenFate::Remove(job) => Some(job.id),
        ChosenFate::Gone | ChosenFate::Stay { .. } => None,
    });
    let going: Vec<JobId> = going.collect();
    let pruned = handle.state().submit(prune).await?;
    for job in going {
        handle.state().logs().forget(job);
    }
    add(all, pruned);
    Ok(())
}

/// Up to where the history is read with this job.
fn reached(prune: &Prune) -> Position {
    let ends = prune.jobs.iter().filter_map(|chosen| chosen.end);
    ends.max().unwrap_or(prune.from)
}

/// What happens to a job, by its record.
struct Found {
    fate: ChosenFate,
    /// The operations that this adds to a commit.
    added: usize,
    /// Bytes of a job that were removed before it, because the job is too large for one commit.
    freed: u64,
    is_readable: bool,
}

impl Found {
    const fn of(fate: ChosenFate) -> Self {
        Self {
            fate,
            added: 0,
            freed: 0,
            is_readable: true,
        }
    }
}

async fn found(handle: &Handle, candidate: &Candidate, fate: Fate) -> Result<Found, RemovalError> {
    let id = candidate.job.id;
    let job = match handle.state().job(id).await {
        Err(error @ ReadError::Damaged { .. }) => {
            tracing::error!(job = %id, %error, "a job that should go cannot be read and stays");
            let bytes = candidate.job.bytes;
            return Ok(Found {
                is_readable: fate != Fate::Remove,
                ..Found::of(ChosenFate::Stay { bytes })
            });
        }
        job => job?,
    };
    match (job, fate) {
        (None, _) => Ok(Found::of(ChosenFate::Gone)),
        (Some(job), Fate::PassOver(_)) => {
            let bytes = job.bytes();
            Ok(Found::of(ChosenFate::Stay { bytes }))
        }
        (Some(job), Fate::Remove) => {
            let before = job.bytes();
            let job = handle
                .lightened(job, Reason::Pruned, &Actor::Daemon)
                .await?;
            Ok(Found {
                added: operations(&job),
                freed: before.saturating_sub(job.bytes()),
                is_readable: true,
                fate: ChosenFate::Remove(job),
            })
        }
    }
}
