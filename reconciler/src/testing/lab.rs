//! A world without a disk.

use std::collections::BTreeMap;

use model::decide::{
    Activate, Claim, Command, CreateRegistration, Dispatch, Evaluate, Refusal, check_dispatch,
    decide,
};
use model::limits::CYCLE_PAUSE;
use model::{
    Actor, Inputs, JobId, Moment, Order, ProjectId, RunnerId, SourceName, Timestamp, TokenHash,
    WorkflowId, World,
};
use workflow::Sandbox;

use super::{SCANS, Seeded, activate, at, register, source_name};

/// A world in which every decision is applied at once.
pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    pub(crate) entropy: Seeded,
    order: Order,
}

impl Lab {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            world: World::default(),
            now: at(0),
            entropy: Seeded(seed),
            order: Order::START,
        }
    }

    pub(crate) fn decide<C: Command>(&mut self, command: C) -> Result<C::Answer, Refusal> {
        self.order = self.order.next();
        let mut moment = Moment {
            now: self.now,
            steady: self.world.time(self.now),
            order: self.order,
            entropy: &mut self.entropy,
            sandbox: Sandbox::shared(),
            log_bytes: &|_| 0,
            may_make_jobs: true,
            cycle_pause: CYCLE_PAUSE,
        };
        let decision = decide(&self.world, command, &mut moment)?;
        for change in &decision.changes {
            self.world.apply(change);
        }
        Ok(decision.answer)
    }

    pub(crate) fn activate(&mut self, name: &str) -> WorkflowId {
        self.decide(activate(name, SCANS)).unwrap();
        WorkflowId::derive(&source_name(), name)
    }

    /// Activates the workflow in another project.
    pub(crate) fn activate_in(&mut self, source: &SourceName, name: &str) -> WorkflowId {
        let activate = Activate {
            source: source.clone(),
            ..activate(name, SCANS)
        };
        self.decide(activate).unwrap();
        WorkflowId::derive(source, name)
    }

    pub(crate) fn register(&mut self, name: &str, capacity: u32, labels: &[&str]) -> RunnerId {
        self.register_for(None, name, capacity, labels)
    }

    /// Registers a runner of one project.
    pub(crate) fn register_for(
        &mut self,
        project: Option<ProjectId>,
        name: &str,
        capacity: u32,
        labels: &[&str],
    ) -> RunnerId {
        let create = CreateRegistration {
            projects: project.map(|project| [project].into()),
            ..CreateRegistration::default()
        };
        let registration = self.decide(create).unwrap();
        self.decide(register(name, capacity, labels, &registration.secret))
            .unwrap()
            .session
            .runner
    }

    pub(crate) fn claim(&mut self, job: JobId, runner: RunnerId, token: TokenHash) {
        let evaluate = Evaluate::CHEAP;
        let claim = Claim {
            job,
            runner,
            token,
            job_token: None,
            evaluate,
        };
        self.decide(claim).unwrap();
    }

    pub(crate) fn dispatch(&mut self, workflow: WorkflowId, scan: &str) -> JobId {
        let checked = check_dispatch(&self.world, workflow, scan, &BTreeMap::new()).unwrap();
        self.decide(Dispatch {
            workflow,
            scan: checked.scan,
            revision: checked.revision,
            inputs: Inputs::Inline(checked.inputs),
            actor: Actor::Daemon,
            idempotency: None,
            again: None,
        })
        .unwrap()
    }
}
