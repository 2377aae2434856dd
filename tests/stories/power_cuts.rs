//! The power of the disk is cut again and again, at random moments and under load, on file systems that forget as much
//! as they may; after each cut the real daemon must start, and everything it has acknowledged must be true.
//!
//!     EVERSCAN_POWER_CUTS=1000 cargo test -p daemon --test stories power_cuts
//!
//! is the long form; results are in `docs/track-record.md`. The runner and the clients are on another machine, so to
//! speak: what they have heard outlives the cut.

mod image;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use client::{Client, Secret};
use tokio::runtime::Runtime;

use crate::chance::Chance;
use crate::load::{self, Load};
use crate::machine::{apart, say, skip};
use crate::promises::{Finding, Promises};
use crate::support::{World, eventually, lines, signal};
use crate::tree;
use image::{FileSystem, Image};

/// Cuts of all file systems together, unless `EVERSCAN_POWER_CUTS` says otherwise.
const CUTS: u64 = 20;

/// File systems that share them.
const FILE_SYSTEMS: u64 = 4;

/// Cuts among which the runner dies once. Rare, since the daemon must be up for some time before it believes that.
const RUNNER_DIES: u64 = 25;

#[test]
fn ext4() {
    apart("power_cuts::ext4", || survive(FileSystem::Ext4));
}

#[test]
fn ext4_without_its_heuristic() {
    apart("power_cuts::ext4_without_its_heuristic", || {
        survive(FileSystem::Ext4NoAutoDaAlloc);
    });
}

#[test]
fn ext4_with_late_content() {
    apart("power_cuts::ext4_with_late_content", || {
        survive(FileSystem::Ext4Writeback);
    });
}

#[test]
fn xfs() {
    apart("power_cuts::xfs", || survive(FileSystem::Xfs));
}

/// A machine whose disk loses its power, and those who talk to it.
struct Machine {
    image: Image,
    world: World,
    runtime: Runtime,
    client: Client,
    promises: Arc<Mutex<Promises>>,
    chance: Chance,
    /// Texts of the workflow so far.
    revisions: u64,
}

fn survive(file_system: FileSystem) {
    let cuts = std::env::var("EVERSCAN_POWER_CUTS")
        .map_or(CUTS, |cuts| cuts.parse().unwrap())
        .div_ceil(FILE_SYSTEMS);
    let seed = Chance::seed();
    let began = Instant::now();
    let mut machine = match Machine::start(file_system, seed) {
        Ok(machine) => machine,
        Err(reason) => return skip(file_system.name(), &reason),
    };
    let mut findings = Vec::new();
    let mut during_start = 0;
    for cut in 1..=cuts {
        let found = machine.cut_and_compare(cut % RUNNER_DIES == 0, &mut during_start);
        for finding in &found {
            say(&format!("{}, cut {cut}: {finding}", file_system.name()));
        }
        findings.extend(found);
    }
    findings.extend(machine.end());
    let acknowledged = machine.promises.lock().unwrap().acknowledged;
    let count = |is: fn(&Finding) -> bool| findings.iter().filter(|found| is(found)).count();
    say(&format!(
        "power cuts | {} | {} cuts, {during_start} of them during a start | {} acknowledged | {} lost | {} torn | {} twice | seed {seed} | {} s",
        file_system.name(),
        cuts + during_start,
        acknowledged,
        count(|finding| matches!(finding, Finding::Lost(_))),
        count(|finding| matches!(finding, Finding::Torn(_))),
        count(|finding| matches!(finding, Finding::Twice(_))),
        began.elapsed().as_secs(),
    ));
    assert!(findings.is_empty(), "{findings:?}");
    assert!(acknowledged > cuts, "too little was promised to be broken");
}

impl Machine {
    fn start(file_system: FileSystem, seed: u64) -> Result<Self, String> {
        let mut world = World::new();
        let image = Image::make(file_system, &world.path("image"), &world.path("state"))?;
        world.init_repository();
        world.push(&[("count.yaml", Some(&load::workflow(&world, 0)))]);
        world.start_daemon();
        world.sync();
        world.start_runner(3);
        let token = world.token().map(Secret::new);
        let client = Client::new(world.url(), token).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Ok(Self {
            image,
            world,
            runtime,
            client,
            promises: Arc::default(),
            chance: Chance::new(seed),
            revisions: 0,
        })
    }

    /// One cut under load or while the daemon stops, sometimes more during the starts after it.
    fn cut_and_compare(&mut self, runner_dies: bool, during_start: &mut u64) -> Vec<Finding> {
        let load = Load::start(self.runtime.handle(), &self.client, &self.promises);
        self.wait(50..1500);
        if self.chance.one_in(4) {
            self.revisions += 1;
            let text = load::workflow(&self.world, self.revisions);
            self.world.push(&[("count.yaml", Some(&text))]);
            self.wait(0..100);
        }
        if self.chance.one_in(5) {
            signal(self.world.daemon_pid(), "TERM");
            self.wait(0..100);
        }
        self.image.cut_power();
        // Whatever is said now is said without a disk.
        self.wait(0..50);
        self.world.kill_daemon();
        drop(load);
        if runner_dies {
            self.world.kill_runner();
        } else {
            signal(self.world.runner.as_ref().unwrap().id(), "STOP");
        }
        self.image.unmount();
        self.image.mount().unwrap();
        while self.chance.one_in(4) {
            self.world.spawn_daemon();
            self.wait(0..150);
            self.image.cut_power();
            self.world.kill_daemon();
            self.image.unmount();
            self.image.mount().unwrap();
            *during_start += 1;
        }
        let findings = self.restart();
        if runner_dies {
            self.world.run_runner();
            let ran = self.world.path("ran");
            let before = lines(&ran).len();
            eventually("the new runner's work", || lines(&ran).len() > before);
        } else {
            signal(self.world.runner.as_ref().unwrap().id(), "CONT");
        }
        findings
    }

    /// Starts the daemon and compares; the runner does nothing meanwhile.
    fn restart(&mut self) -> Vec<Finding> {
        self.world.start_daemon();
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
    fn end(&mut self) -> Vec<Finding> {
        let unfinished: Vec<_> = self.promises.lock().unwrap().unfinished().collect();
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

    fn wait(&mut self, range: std::ops::Range<u64>) {
        std::thread::sleep(self.chance.milliseconds(range));
    }
}
