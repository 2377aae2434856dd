//! Checks that a state folder keeps its promises. Nothing is changed, and a daemon may use the folder meanwhile.
//!
//! The check sees the files as they will be once the journal is applied. A state in use changes during the check. So a
//! finding in one part counts only if nothing was committed while the part was read; otherwise the part is read again.
//! The check does not use the current time: somebody may have set the clock, so no time in a record counts as damage.
//! Memory is bounded by the live records and about forty bytes for each finished job.

mod blobs;
mod check;
mod damaged_lines;
mod facts;
mod finding;
mod folders;
mod history;
mod jobs;
mod lines;
mod pages;
mod removed;
mod repair;
mod scans;
mod workflows;

use std::path::{Path, PathBuf};

use model::{ScanKey, Totals};
use serde::Serialize;
use store::Owner;
use store::file::OpenError;
use store::look::{Look, Position};

use self::check::Check;
pub(crate) use self::check::join;
use self::facts::{Facts, Known};
use self::finding::Evidence;
pub use self::finding::{Code, Finding, Severity};
pub(crate) use self::lines::each_line;
pub use self::repair::{Loss, Moved, Repair, RepairError, repair};
use crate::layout::Layout;
use crate::limits::{CHECK_PAUSE, CHECK_TRIES};

/// What a check or a repair reports while it runs.
#[derive(Debug)]
pub enum Event {
    Found(Finding),
    /// How much has been checked so far.
    Progress(Counts),
    /// A repair has made a change.
    Done(Repair),
    /// A repair leaves this finding to a person.
    Left(Finding),
}

/// How much was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Files, without the store's own.
    pub files: u64,
    pub bytes: u64,
    pub records: u64,
    pub jobs: u64,
}

#[derive(Debug)]
pub struct Checked {
    pub counts: Counts,
    /// The store's last commit when the check began.
    pub position: Position,
    /// The process that has the state open, if any.
    pub user: Option<Owner>,
    /// Parts that changed during every attempt and so were not checked completely.
    pub unsettled: u64,
}

/// Scans with wrong counters, and the counters that match their jobs.
type Miscounted = Vec<(ScanKey, Totals)>;

/// Checks the state folder at `root`. Blocks. It is an error if the folder is not a state or has a newer format. Every
/// other problem is a finding.
pub fn fsck(root: &Path, report: &mut dyn FnMut(Event)) -> Result<Checked, OpenError> {
    Ok(check(root, report)?.0)
}

fn check(root: &Path, report: &mut dyn FnMut(Event)) -> Result<(Checked, Miscounted), OpenError> {
    let look = Look::at(root)?;
    let position = look.position();
    let user = look.user();
    let known = Known {
        owner: look.owner()?,
        began: position.last,
        is_used: user.is_some(),
        ..Known::default()
    };
    let mut fsck = Fsck {
        root: root.to_owned(),
        look,
        known,
        report,
        counts: Counts::default(),
        unsettled: 0,
    };
    let miscounted = fsck.run()?;
    let checked = Checked {
        counts: fsck.counts,
        position,
        user,
        unsettled: fsck.unsettled,
    };
    Ok((checked, miscounted))
}

struct Fsck<'a> {
    root: PathBuf,
    look: Look,
    known: Known,
    report: &'a mut dyn FnMut(Event),
    counts: Counts,
    unsettled: u64,
}

impl Fsck<'_> {
    fn run(&mut self) -> Result<Miscounted, OpenError> {
        self.part(folders::check_store)?;
        let top = self.part(folders::check_root)?.folders;
        // Workflows come first: jobs are compared with their histories and revisions.
        for top in top.iter().filter(|top| *top == "workflows") {
            for folder in self.folders(top)? {
                self.part(|check| workflows::check(check, &folder))?;
            }
        }
        self.report_duplicates();
        for top in &top {
            match top.as_str() {
                "jobs" => self.jobs(top)?,
                "workflows" => {}
                "blobs" => self.each_folder(top, blobs::check_contents)?,
                "blob-records" => self.each_folder(top, blobs::check_records)?,
                _ => {
                    self.part(|check| folders::check(check, top))?;
                }
            }
        }
        Ok(self.part(removed::check)?.miscounted)
    }

    fn jobs(&mut self, top: &str) -> Result<(), OpenError> {
        for day in self.folders(top)? {
            for hour in self.folders(&day)? {
                for shard in self.folders(&hour)? {
                    for job in self.folders(&shard)? {
                        self.part(|check| jobs::check(check, &job))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks a folder and all folders in it, each as a part.
    fn each_folder(&mut self, top: &str, check: fn(&mut Check<'_>, &str)) -> Result<(), OpenError> {
        let mut waiting = vec![top.to_owned()];
        while let Some(folder) = waiting.pop() {
            waiting.extend(self.part(|one| check(one, &folder))?.folders);
        }
        Ok(())
    }

    /// The folders in a folder that contains only folders.
    fn folders(&mut self, folder: &str) -> Result<Vec<String>, OpenError> {
        let part = self.part(|check| check.facts.folders = check.only_folders(folder))?;
        Ok(part.folders)
    }

    fn report_duplicates(&mut self) {
        for job in self.known.learned.sort_ended() {
            let key = Layout::job(job);
            let what = "the job has two lines in histories";
            (self.report)(Event::Found(Finding::new(Code::HistoryTwice, key, what)));
        }
    }

    /// Checks one part, and repeats this until nothing was committed during the check.
    fn part(&mut self, check: impl Fn(&mut Check<'_>)) -> Result<Facts, OpenError> {
        let mut tries = 1;
        let (mut found, mut facts) = self.once(&check);
        while !found.is_empty() && !self.look.is_current()? {
            if tries == CHECK_TRIES {
                let before = found.len();
                found.retain(|finding| finding.code.evidence() == Evidence::OneFile);
                self.unsettled += u64::from(found.len() < before);
                break;
            }
            std::thread::sleep(CHECK_PAUSE);
            tries += 1;
            self.look = Look::at(&self.root)?;
            (found, facts) = self.once(&check);
        }
        for finding in found {
            (self.report)(Event::Found(finding));
        }
        self.counts.files += facts.counts.files;
        self.counts.bytes += facts.counts.bytes;
        self.counts.records += facts.counts.records;
        self.counts.jobs += facts.counts.jobs;
        self.known.learned.add(std::mem::take(&mut facts.learned));
        (self.report)(Event::Progress(self.counts));
        Ok(facts)
    }

    fn once(&self, check: &impl Fn(&mut Check<'_>)) -> (Vec<Finding>, Facts) {
        let mut one = Check {
            look: &self.look,
            known: &self.known,
            found: Vec::new(),
            facts: Facts::default(),
        };
        check(&mut one);
        (one.found, one.facts)
    }
}
