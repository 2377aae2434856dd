//! A daemon that is killed and restarted while a runner and clients keep running. After a restart,
//! its state is compared with its earlier responses.

use std::sync::{Arc, Mutex};

use client::{Client, Secret};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::copies::Copier;
use crate::load::{self, Load, Player, WORKFLOWS};
use crate::promises::{Finding, Promises};
use crate::support::{PATIENCE, World, signal};
use crate::tree;

/// The runner's capacity.
const CAPACITY: u32 = 3;

pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) promises: Arc<Mutex<Promises>>,
    runtime: Runtime,
    client: Client,
    /// The number of versions of the workflow so far.
    revisions: u64,
}

impl Site {
    /// A world with only a repository.
    pub(crate) fn prepare() -> World {
        let mut world = World::new();
        world.daemon_config = Some(load::configuration());
        world.init_repository();
        let text = load::workflow(&world, 0);
        let files = WORKFLOWS.map(|name| format!("{name}.yaml"));
        world.push(&[(&files[0], Some(&text)), (&files[1], Some(&text))]);
        std::fs::create_dir(world.path("copies")).unwrap();
        world
    }

    /// A site for a world with a serving daemon.
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

    /// Lets clients work until the returned value is dropped.
    pub(crate) fn load(&self) -> Load {
        self.loader()()
    }

    /// A function that starts clients later.
    pub(crate) fn loader(&self) -> impl Fn() -> Load + use<> {
        let (runtime, player) = (self.runtime.handle().clone(), self.player());
        move || Load::start(&runtime, &player)
    }

    /// Lets each client run once.
    pub(crate) fn load_once(&self) -> Load {
        Load::once(self.runtime.handle(), &self.player())
    }

    fn player(&self) -> Player {
        Player {
            client: self.client.clone(),
            copier: Copier::of(&self.world),
            promises: self.promises.clone(),
        }
    }

    /// Changes the workflow.
    pub(crate) fn push(&mut self) {
        self.revisions += 1;
        let text = load::workflow(&self.world, self.revisions);
        self.world.push(&[("count.yaml", Some(&text))]);
    }

    /// Pauses the runner's process. Without clients, nothing changes then.
    pub(crate) fn hold_runner(&self) {
        self.signal_runner("STOP");
    }

    pub(crate) fn release_runner(&self) {
        self.signal_runner("CONT");
    }

    fn signal_runner(&self, name: &str) {
        signal(self.world.runner.as_ref().unwrap().id(), name);
    }

    /// Checks the files that the last daemon left, starts the next one and compares its answers with the promises. The
    /// runner is stopped, or dead.
    pub(crate) fn restart(&mut self) -> Vec<Finding> {
        let mut findings = self.check();
        self.world.spawn_daemon();
        if !self.world.await_daemon() {
            let log = self.world.daemon_log();
            let (_, said) = log.rsplit_once("error: ").unwrap_or_default();
            findings.push(Finding::Lost(format!("everything: {said}")));
            return findings;
        }
        let mut promises = self.promises.lock().unwrap();
        let compared = self.runtime.block_on(promises.compare(&self.client));
        findings.extend(compared.unwrap());
        findings.extend(promises.compare_executions(&self.world.path("ran")));
        let state = self.world.path("state");
        let (past, tree_findings) = if findings.is_empty() {
            tree::read_while_daemon_runs(&state)
        } else {
            // There is damage already, so do not wait until the files are settled.
            tree::look(&state)
        };
        findings.extend(tree_findings);
        findings.extend(promises.removals.judge(&past));
        findings.extend(promises.copies.compare(&self.world, &past));
        drop(promises);
        findings.extend(self.check());
        // The daemon does not sync its Git mirror to disk, so a crash may lose it: fetch again.
        self.world.sync();
        findings
    }

    /// Lets all jobs end, and compares everything.
    pub(crate) fn end(&mut self) -> Vec<Finding> {
        let unfinished = self.promises.lock().unwrap().unfinished().clone();
        for job in unfinished {
            let ended = load::ended(&self.client, job);
            let ended = self
                .runtime
                .block_on(async { timeout(PATIENCE, ended).await });
            let said = (self.world.daemon_log(), self.world.runner_log());
            ended.unwrap_or_else(|_| panic!("job {job} did not end: {said:?}"));
        }
        self.world.stop_runner();
        let mut promises = self.promises.lock().unwrap();
        let compared = self.runtime.block_on(promises.compare_all(&self.client));
        let mut findings = compared.unwrap();
        findings.extend(promises.compare_executions(&self.world.path("ran")));
        drop(promises);
        self.world.stop_daemon();
        let (past, tree_findings) = tree::look(&self.world.path("state"));
        findings.extend(tree_findings);
        findings.extend(self.promises.lock().unwrap().removals.judge(&past));
        findings.extend(self.check());
        findings
    }

    /// Lets `everscand fsck` check the state.
    fn check(&self) -> Vec<Finding> {
        tree::check(&self.world, &self.world.path("state")).findings
    }
}
