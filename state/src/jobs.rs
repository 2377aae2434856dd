//! Reads jobs, running or finished, one by one and in lists.

use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec;

use model::{
    Job, JobId, Projects, ScanHead, ScanKey, StateKind, Timestamp, Trigger, WorkflowId, World,
};
use workflow::ScanName;

use crate::envelope;
use crate::error::ReadError;
use crate::history::{CursorResult, HistoryCursor, KnownPast, Wanted};
use crate::layout::Layout;
use crate::limits::{FRUITLESS_PIECES, LINES_OF_A_PIECE};
use crate::page_index::PageIndex;
use crate::reader::StoreReader;
use crate::warned::DamagedLines;

/// Selects jobs for a list. A job must match every field that is set.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub workflow: Option<WorkflowId>,
    pub scan: Option<ScanName>,
    pub state: Option<StateKind>,
    /// Only jobs of these projects.
    pub projects: Projects,
    pub trigger: Option<Trigger>,
    /// Only jobs with this reason code.
    pub reason: Option<String>,
    /// Only jobs executed by the runner with this name.
    pub runner: Option<String>,
    /// Only jobs made at this time or later.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct JobPage {
    pub jobs: Vec<Arc<Job>>,
    /// The next page has the jobs made before this job. `None` at the end. A page may be short although there are more
    /// jobs, if the reader reached its limit.
    pub next: Option<JobId>,
    /// Lines of the histories that could not be read.
    pub damaged: Vec<DamagedLines>,
}

impl JobFilter {
    fn takes_scan(&self, scan: &ScanKey) -> bool {
        self.workflow
            .is_none_or(|workflow| workflow == scan.workflow)
            && self.scan.as_ref().is_none_or(|name| *name == scan.scan)
    }

    fn takes_state(&self, state: StateKind) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
    }

    fn takes(&self, job: &Job) -> bool {
        self.projects.contain(job.project)
            && self.takes_scan(&job.scan_key())
            && self.takes_state(job.state.kind())
            && self.takes_the_rest(job)
    }

    /// Checks the fields that history lines of older daemons lack.
    fn takes_the_rest(&self, job: &Job) -> bool {
        let runner = job.state.run().map(|run| run.runner.name.as_str());
        self.trigger.is_none_or(|trigger| job.trigger == trigger)
            && self.since.is_none_or(|since| job.id >= JobId::at(since))
            && self
                .reason
                .as_deref()
                .is_none_or(|reason| job.reason().code() == reason)
            && (self.runner.is_none() || self.runner.as_deref() == runner)
    }
}

/// A finished job from its record. `None` if there is no such job, or if it has not finished.
pub(crate) async fn settled_job(
    reader: &StoreReader,
    id: JobId,
) -> Result<Option<Arc<Job>>, ReadError> {
    let ended = reader.ended_jobs();
    if let Some(job) = ended.get(id) {
        return Ok(Some(job));
    }
    let before = ended.before();
    let job = reader.record(&Layout::job(id)).await?.map(Arc::new);
    if let Some(job) = &job {
        ended.keep_read(before, job);
    }
    Ok(job)
}

/// The unfinished jobs and the ends of histories, read from the published world at once. So each job is in exactly one
/// of them.
pub(crate) struct Listing {
    live: Vec<Arc<Job>>,
    pasts: Vec<KnownPast>,
}

impl Listing {
    /// Prepares a page of at most `limit` jobs.
    pub(crate) fn of(
        world: &World,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Self {
        let live = world
            .jobs()
            .rev()
            .filter(|job| before.is_none_or(|before| job.id < before) && filter.takes(job))
            .take(limit.saturating_add(1))
            .cloned()
            .collect();
        let has_state = |head: &ScanHead| match filter.state {
            None => true,
            Some(StateKind::Scheduled | StateKind::Running) => false,
            Some(StateKind::Ended(state)) => world.retained(head).of(state) > 0,
        };
        let has_project = |head: &ScanHead| {
            let workflow = world.workflow_record(head.workflow);
            workflow.map_or(filter.projects.is_all(), |record| {
                filter.projects.contain(record.project)
            })
        };
        let pasts = world
            .heads()
            .filter(|head| has_state(head) && filter.takes_scan(&head.key()) && has_project(head))
            .map(|head| KnownPast::of(world, head))
            .collect();
        Self { live, pasts }
    }

    /// The ids of the newest finished jobs, without reading their records. Some may have been removed.
    pub(crate) async fn finished(
        self,
        reader: &StoreReader,
        index: &Arc<PageIndex>,
        limit: usize,
    ) -> Result<Vec<JobId>, ReadError> {
        let mut fruitless = FRUITLESS_PIECES;
        let mut merge = Merge::new(self, reader, index, &Wanted::default());
        let mut ids = Vec::new();
        while ids.len() < limit {
            match merge.next(&mut fruitless).await? {
                Found::Job(Listed::OnDisk(id)) => ids.push(id),
                Found::Job(Listed::InMemory(_)) => {}
                Found::Nothing | Found::TooFar => break,
            }
        }
        Ok(ids)
    }

    /// The first `limit` jobs. Jobs whose record is missing or damaged are skipped. At most `fruitless` pieces of
    /// histories are read without finding a job.
    pub(crate) async fn page(
        self,
        reader: &StoreReader,
        index: &Arc<PageIndex>,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
        mut fruitless: usize,
    ) -> Result<JobPage, ReadError> {
        let wanted = Wanted {
            before,
            since: filter.since.map(JobId::at),
            state: filter.state.and_then(StateKind::ended),
            trigger: filter.trigger,
            reason: filter.reason.clone(),
            runner: filter.runner.clone(),
        };
        let mut merge = Merge::new(self, reader, index, &wanted);
        let mut jobs: Vec<Arc<Job>> = Vec::new();
        let mut passed = before;
        let mut listed: Vec<Listed> = Vec::new();
        let mut left_out = 0;
        let next = loop {
            let end = loop {
                match merge.next(&mut fruitless).await? {
                    Found::Job(job) if jobs.len() + listed.len() < limit => listed.push(job),
                    end => break end,
                }
            };
            passed = listed.last().map(Listed::id).or(passed);
            let wanted = listed.len();
            let mut found = read(reader, std::mem::take(&mut listed)).await?;
            found.retain(|job| filter.takes_the_rest(job));
            left_out += wanted - found.len();
            jobs.extend(found);
            // A piece's worth of missing records costs as much as reading a piece.
            fruitless = fruitless.saturating_sub(left_out / LINES_OF_A_PIECE);
            left_out %= LINES_OF_A_PIECE;
            match end {
                Found::Job(_) if fruitless == 0 => break passed,
                Found::Nothing => break None,
                Found::TooFar => break passed.or(Some(JobId::LAST)),
                Found::Job(_) if jobs.len() >= limit => break passed,
                // This job replaces a job that was skipped.
                Found::Job(job) => listed.push(job),
            }
        };
        let cursors = merge.cursors.iter();
        let damaged = cursors.flat_map(HistoryCursor::damaged).collect();
        Ok(JobPage {
            jobs,
            next,
            damaged,
        })
    }
}

/// Reads the records of a list at once, and skips unreadable records.
async fn read(reader: &StoreReader, listed: Vec<Listed>) -> Result<Vec<Arc<Job>>, ReadError> {
    let ended = reader.ended_jobs();
    let known = listed.into_iter().map(|job| match job {
        Listed::OnDisk(id) => ended.get(id).map_or(job, Listed::InMemory),
        live => live,
    });
    let known: Vec<Listed> = known.collect();
    let settled = known.iter().filter_map(|job| match job {
        Listed::InMemory(_) => None,
        Listed::OnDisk(id) => Some(Layout::job(*id)),
    });
    let before = ended.before();
    let mut records = reader.get_many(settled.collect()).await?.into_iter();
    let jobs = known.into_iter().filter_map(|job| match job {
        Listed::InMemory(job) => Some(job),
        Listed::OnDisk(id) => {
            let key = Layout::job(id);
            match envelope::open_at(&key, &records.next().flatten()?) {
                Ok(job) => {
                    let job = Arc::new(job);
                    ended.keep_read(before, &job);
                    Some(job)
                }
                Err(problem) => {
                    let error = ReadError::damaged(key, problem);
                    tracing::error!(job = %id, %error, "a job cannot be read and is left out of a list");
                    None
                }
            }
        }
    });
    Ok(jobs.collect())
}

/// Live jobs and histories as one descending sequence. A history is opened only when its scan may hold the next job.
struct Merge {
    live: Peekable<vec::IntoIter<Arc<Job>>>,
    cursors: Vec<HistoryCursor>,
    newest: BinaryHeap<Candidate>,
}

enum Listed {
    InMemory(Arc<Job>),
    OnDisk(JobId),
}

impl Listed {
    fn id(&self) -> JobId {
        match self {
            Self::InMemory(job) => job.id,
            Self::OnDisk(id) => *id,
        }
    }
}

enum Found {
    Job(Listed),
    Nothing,
    /// There may be more jobs, but the limit of pieces was reached.
    TooFar,
}

/// The next job of a cursor. If `is_known` is false, `id` is only an upper bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    id: JobId,
    is_known: bool,
    cursor: usize,
}

impl Merge {
    fn new(
        listing: Listing,
        reader: &StoreReader,
        index: &Arc<PageIndex>,
        wanted: &Wanted,
    ) -> Self {
        let cursors: Vec<_> = listing
            .pasts
            .iter()
            .map(|past| HistoryCursor::new(reader.clone(), index.clone(), past, wanted.clone()))
            .collect();
        let bounds = cursors.iter().enumerate();
        let newest = bounds
            .filter_map(|(cursor, history)| {
                Some(Candidate {
                    id: history.bound()?,
                    is_known: false,
                    cursor,
                })
            })
            .collect();
        Self {
            live: listing.live.into_iter().peekable(),
            cursors,
            newest,
        }
    }

    async fn next(&mut self, fruitless: &mut usize) -> Result<Found, ReadError> {
        let live = self.live.peek().map(|job| job.id);
        while self
            .newest
            .peek()
            .is_some_and(|candidate| Some(candidate.id) > live)
            && let Some(candidate) = self.newest.pop()
            && let Some(cursor) = self.cursors.get_mut(candidate.cursor)
        {
            if candidate.is_known {
                cursor.pop();
                // The cursor searches for its next job only when needed.
                self.newest.push(Candidate {
                    is_known: false,
                    ..candidate
                });
                return Ok(Found::Job(Listed::OnDisk(candidate.id)));
            }
            match cursor.newest(fruitless).await? {
                CursorResult::Job(id) => self.newest.push(Candidate {
                    id,
                    is_known: true,
                    cursor: candidate.cursor,
                }),
                CursorResult::End => {}
                CursorResult::TooFar => return Ok(Found::TooFar),
            }
        }
        let live = self.live.next().map(Listed::InMemory);
        Ok(live.map_or(Found::Nothing, Found::Job))
    }
}
