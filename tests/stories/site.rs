//! A daemon with a runner and clients, all of which outlive it: what they were told is what it is measured by.

use std::sync::{Arc, Mutex};

use client::{Client, Secret};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::load::{self, Load};
use crate::promises::{Finding, Promises};
use crate::support::{World, signal};
use crate::tree;

/// Jobs that the runner takes at once.
const CAPACITY: u32 = 3;

pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) promises: Arc<Mutex<Promises>>,
    runtime: Runtime,
    client: Client,
    /// Texts of the workflow so far.
    revisions: u64,
}

impl Site {
    /// A world whose repository is there, and nothing else yet.
    pub(crate) fn prepare() -> World {
        let world = World::new();
        world.init_repository();
        world.push(&[("count.yaml", Some(&load::workflow(&world, 0)))]);
        world
    }

    /// The daemon of a prepared world serves.
    pub(crate) fn of(mut world: World) -> Self {
        world.sync();
        world.start_runner(CAPACITY);
        let token = world.token().map(Secret::new);
        let client = Client::new(world.url(), token).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Self {
            world,
            promises: Arc::default(),
            runtime,
            client,
            revisions: 0,
        }
    }

    /// Lets clients work until what is answered is dropped.
    pub(crate) fn load(&self) -> Load {
        Load::start(self.runtime.handle(), &self.client, &self.promises)
    }

    /// Lets clients do each thing once.
    pub(crate) fn load_once(&self) -> Load {
        Load::once(self.runtime.handle(), &self.client, &self.promises)
    }

    /// Changes the workflow.
    pub(crate) fn push(&mut self) {
        self.revisions += 1;
        let text = load::workflow(&self.world, self.revisions);
        self.world.push(&[("count.yaml", Some(&text))]);
    }

    /// Nothing changes while the runner holds still and clients are gone.
    pub(crate) fn hold_runner(&self) {
        self.signal_runner("STOP");
    }

    pub(crate) fn release_runner(&self) {
        self.signal_runner("CONT");
    }

    fn signal_runner(&self, name: &str) {
        signal(self.world.runner.as_ref().unwrap().id(), name);
    }

    /// Starts the daemon and compares what it says now with what it had said. The runner holds still, or is dead.
    pub(crate) fn restart(&mut self) -> Vec<Finding> {
        self.world.spawn_daemon();
        if !self.world.await_daemon() {
            let log = self.world.daemon_log();
            let (_, said) = log.rsplit_once("error: ").unwrap_or_default();
            return vec![Finding::Lost(format!("everything: {said}"))];
        }
        let mut promises = self.promises.lock().unwrap();
        let compared = self.runtime.block_on(promises.compare(&self.client));
        let mut findings = compared.unwrap();
        findings.extend(tree::compare(&self.world.path("state")));
        findings.extend(promises.compare_executions(&self.world.path("ran")));
        drop(promises);
        // The mirror is a copy of the repository that nobody syncs: it heals.
        self.world.sync();
        findings
    }

    /// Lets everything come to its end, and compares all of it.
    pub(crate) fn end(&mut self) -> Vec<Finding> {
        let unfinished: Vec<Uuid> = self.promises.lock().unwrap().unfinished().collect();
        for job in unfinished {
            self.world.finished(&job.to_string());
        }
        self.world.stop_runner();
        let mut promises = self.promises.lock().unwrap();
        let compared = self.runtime.block_on(promises.compare_all(&self.client));
        let mut findings = compared.unwrap();
        findings.extend(promises.compare_executions(&self.world.path("ran")));
        self.world.stop_daemon();
        findings.extend(tree::compare(&self.world.path("state")));
        findings
    }
}
