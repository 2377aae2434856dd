//! Requests of people.

use std::collections::BTreeMap;

use model::decide::{Acknowledge, Again, Cancel, Dispatch, Resume, Silence, Suspend};
use model::{Actor, IdempotencyKey, Inputs, JobId, TokenId, WorkflowId};

use super::Simulation;
use crate::tests::fixture::scan_name;
use crate::tests::simulation::scenario::files;

/// A dispatch that may be repeated, and its answer.
pub(super) struct Asked {
    dispatch: Dispatch,
    answer: Option<JobId>,
}

impl Simulation {
    /// Dispatches a scan, or repeats an earlier request.
    pub(super) async fn dispatch(&mut self) {
        let at = if self.choices.percent(25) && !self.asked.is_empty() {
            self.asked.len() - 1 - self.choices.below(self.asked.len().min(4))
        } else {
            let dispatched = [
                (0, "produce"),
                (0, "always"),
                (0, "reader"),
                (0, "reader"),
                (1, "left"),
                (1, "itself"),
            ];
            let (file, scan) = dispatched[self.choices.below(dispatched.len())];
            let Some(dispatch) = self.new_dispatch(files()[file].id, scan, None) else {
                return;
            };
            let answer = None;
            self.asked.push(Asked { dispatch, answer });
            self.asked.len() - 1
        };
        self.ask_for(at).await;
    }

    /// Dispatches a finished job again.
    pub(super) async fn rerun(&mut self) {
        let jobs = self.oracle.newest_jobs(20);
        let Some(job) = self.choices.one_of(&jobs).cloned() else {
            return;
        };
        let again = Again {
            job: job.id,
            revision: None,
            source: None,
            callback: job.callback.clone(),
        };
        let dispatch = self.new_dispatch(job.workflow.id, job.scan.as_str(), Some(again));
        if job.state.is_terminal()
            && let Some(dispatch) = dispatch
        {
            let answer = None;
            self.asked.push(Asked { dispatch, answer });
            self.ask_for(self.asked.len() - 1).await;
        }
    }

    async fn ask_for(&mut self, at: usize) {
        let dispatch = self.asked[at].dispatch.clone();
        self.note(format!("dispatch {} of {}", at, dispatch.scan));
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let answer = daemon.submit(dispatch).await.ok();
        // The answer may be lost on its way.
        if let Some(job) = answer.filter(|_| self.choices.percent(80)) {
            let asked = &mut self.asked[at];
            let first = *asked.answer.get_or_insert(job);
            assert_eq!(first, job, "two jobs were made for one request");
            self.oracle.was_dispatched(job);
        }
    }

    pub(super) fn new_dispatch(
        &self,
        workflow: WorkflowId,
        scan: &str,
        again: Option<Again>,
    ) -> Option<Dispatch> {
        let daemon = self.daemon.as_ref()?;
        let record = daemon
            .state
            .read(|world| world.workflow_record(workflow).cloned())?;
        let caller = TokenId::from_uuid(uuid::Uuid::nil());
        let key = self.asked.len().to_string();
        Some(Dispatch {
            workflow,
            scan: scan_name(scan),
            revision: record.revision.id,
            inputs: Inputs::Inline(BTreeMap::new()),
            actor: Actor::Daemon,
            idempotency: Some(IdempotencyKey::new(
                caller.uuid(),
                "dispatch",
                &key,
                key.as_bytes(),
            )),
            again,
        })
    }

    pub(super) async fn cancel(&mut self) {
        let mut jobs = self.oracle.newest_jobs(30);
        jobs.retain(|job| !job.state.is_terminal());
        let Some(job) = self.choices.one_of(&jobs).map(|job| job.id) else {
            return;
        };
        self.note(format!("cancel {job}"));
        let actor = Actor::Daemon;
        if let Some(daemon) = &mut self.daemon {
            drop(daemon.submit(Cancel { job, actor }).await);
        }
    }

    /// Acknowledges or silences an open condition.
    pub(super) async fn attend(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let open = daemon.state.read(|world| {
            let open = world.conditions();
            open.map(|open| open.id).collect::<Vec<_>>()
        });
        let Some(&condition) = self.choices.one_of(&open) else {
            return;
        };
        let choice = self.choices.below(4);
        if choice == 0 {
            let acknowledge = Acknowledge {
                condition,
                note: None,
                actor: Actor::Daemon,
            };
            drop(daemon.submit(acknowledge).await);
        } else {
            let seconds = (choice > 1).then(|| self.choices.between(60, 1_200) as u64);
            drop(daemon.submit(Silence { condition, seconds }).await);
        }
        self.note(format!("a person attends to {condition} in way {choice}"));
    }

    /// Suspends a scan or a workflow.
    pub(super) async fn suspend(&mut self) {
        let file = &files()[self.choices.below(files().len())];
        let scans: Vec<_> = file.scans().collect();
        let scan = &scans[self.choices.below(scans.len())].scan;
        let scan = self.choices.percent(70).then(|| scan.to_string());
        self.note(format!("suspend {} {scan:?}", file.name));
        let suspend = Suspend {
            workflow: file.id,
            scan,
            reason: "to see".to_owned(),
            actor: Actor::Daemon,
        };
        if let Some(daemon) = &mut self.daemon {
            drop(daemon.submit(suspend).await);
        }
    }

    /// Ends a suspension.
    pub(super) async fn resume(&mut self) {
        let suspended = self.suspended();
        if let Some(resume) = self.choices.one_of(&suspended).cloned() {
            self.note(format!("resume {:?}", resume.scan));
            if let Some(daemon) = &mut self.daemon {
                drop(daemon.submit(resume).await);
            }
        }
    }

    /// Ends most suspensions. False if that failed.
    pub(super) async fn resume_most(&mut self) -> bool {
        for resume in self.suspended() {
            if self.choices.percent(80) {
                self.note(format!("resume {:?}", resume.scan));
                let Some(daemon) = &mut self.daemon else {
                    return false;
                };
                let resumed = daemon.submit(resume).await;
                self.check().await;
                if resumed.is_err() {
                    return false;
                }
            }
        }
        true
    }

    fn suspended(&self) -> Vec<Resume> {
        let resume = |suspension: &model::Suspension| Resume {
            workflow: suspension.workflow.id,
            scan: suspension.scan.as_ref().map(ToString::to_string),
            reason: None,
            actor: Actor::Daemon,
        };
        self.daemon.as_ref().map_or_else(Vec::new, |daemon| {
            daemon.state.read(|world| {
                let all = world.suspensions().filter(|it| it.is_in_force());
                all.map(|suspension| resume(suspension)).collect()
            })
        })
    }
}
