//! Cuts the power of the disk again and again, at random moments and under load, on file systems that may lose unsynced
//! data. After each cut the real daemon must start and have everything that it acknowledged.
//!
//!     EVERSCAN_POWER_CUTS=1000 cargo test -p daemon --test stories power_cuts
//!
//! is the long form; `docs/evidence/track-record.md` has results. Runner and clients are not affected by a cut, as if they were
//! on another machine.

mod image;

use std::ops::Range;
use std::time::Instant;

use crate::chance::Chance;
use crate::machine::{Memory, apart, say, skip};
use crate::promises::Finding;
use crate::site::Site;
use crate::support::{World, eventually, lines, signal};
use image::{FileSystem, Image};

/// Total number of cuts, unless `EVERSCAN_POWER_CUTS` sets another.
const CUTS: u64 = 20;

/// Number of file systems that share the cuts.
const FILE_SYSTEMS: u64 = 4;

/// The runner is killed once in this many cuts. Rarely, since the daemon notices only after some time.
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

#[test]
fn an_unsynced_journal_is_detected() {
    let name = "power_cuts::an_unsynced_journal_is_detected";
    apart(name, notice);
}

#[test]
fn the_log_of_a_cancelled_job() {
    let name = "power_cuts::the_log_of_a_cancelled_job";
    apart(name, || {
        let mut world = World::new();
        world.init_repository();
        world.push(&[("main.yaml", Some(STUBBORN))]);
        let image = match Image::make(FileSystem::Ext4, &world.path("image"), &world.path("state"))
        {
            Ok(image) => image,
            Err(reason) => return skip(name, &reason),
        };
        world.start_daemon();
        world.sync();
        world.start_runner(1);
        let job = world.dispatch("main", "stubborn", &[]);
        eventually("the step", || world.log(&job).contains("begun"));
        world.everscan(&["job", "cancel", "-j", &job]);
        // When the runner logs this, it has removed the log.
        eventually("the end of the job at its runner", || {
            world.runner_log().contains("job ended")
        });
        image.cut_power();
        world.kill_daemon();
        image.unmount();
        image.mount().unwrap();
        world.start_daemon();
        let log = world.log(&job);
        assert!(
            log.contains("begun\n") && log.contains("last words\n"),
            "{log}"
        );
        assert!(log.contains("the job was cancelled\n"), "{log}");
        world.kill_runner();
        world.kill_daemon();
    });
}

/// Prints a line when it is stopped.
const STUBBORN: &str = "\
scans:
  stubborn:
    on: {dispatch: {}}
    steps:
      - run: |
          trap 'echo last words; exit 1' TERM
          echo begun
          while :; do sleep 0.1; done
";

/// A daemon that does not sync its commits must be detected; otherwise the other tests prove nothing.
fn notice() {
    let seed = Chance::seed();
    let mut machine = match Machine::start(FileSystem::Ext4, seed) {
        Ok(machine) => machine,
        Err(reason) => return skip("power cuts without a synced journal", &reason),
    };
    machine.site.world.kill_daemon();
    let variable = ("EVERSCAND_UNSYNCED_JOURNAL".to_owned(), "1".to_owned());
    machine.site.world.daemon_variables.push(variable);
    machine.site.world.start_daemon();
    for cut in 1..=CUTS {
        let findings = machine.cut_and_compare(false, &mut 0);
        if let Some(first) = findings.first() {
            return say(&format!(
                "power cuts | ext4, the journal is not synced | noticed at cut {cut}: {} findings, the first: {first}",
                findings.len()
            ));
        }
    }
    panic!("{CUTS} cuts were survived without a synced journal, seed {seed}");
}

/// A machine whose disk loses power, and its clients.
struct Machine {
    image: Image,
    _copies: Memory,
    site: Site,
    chance: Chance,
}

fn survive(file_system: FileSystem) {
    let cuts = std::env::var("EVERSCAN_POWER_CUTS")
        .map_or(CUTS, |cuts| cuts.parse().unwrap())
        .div_ceil(FILE_SYSTEMS);
    let seed = Chance::seed();
    let began = Instant::now();
    let mut machine = match Machine::start(file_system, seed) {
        Ok(machine) => machine,
        Err(reason) => return skip(&format!("power cuts, {}", file_system.name()), &reason),
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
    findings.extend(machine.site.end());
    let (acknowledged, removed, backups) = {
        let promises = machine.site.promises.lock().unwrap();
        (
            promises.acknowledged,
            promises.removals.count(),
            promises.copies.compared,
        )
    };
    let count = |is: fn(&Finding) -> bool| findings.iter().filter(|found| is(found)).count();
    say(&format!(
        "power cuts | {} | {} cuts, {during_start} of them during a start | {acknowledged} acknowledged, {removed} | {backups} backups | {} lost | {} torn | {} twice | seed {seed} | {} s",
        file_system.name(),
        cuts + during_start,
        count(|finding| matches!(finding, Finding::Lost(_))),
        count(|finding| matches!(finding, Finding::Torn(_))),
        count(|finding| matches!(finding, Finding::Twice(_))),
        began.elapsed().as_secs(),
    ));
    assert!(findings.is_empty(), "{findings:?}");
    assert!(acknowledged > cuts, "too few promises to break");
}

impl Machine {
    fn start(file_system: FileSystem, seed: u64) -> Result<Self, String> {
        let mut world = Site::prepare();
        let image = Image::make(file_system, &world.path("image"), &world.path("state"))?;
        // A backup waits for all writes of its file system; this file system has no other writers.
        let copies = Memory::mount(&world.path("copies"), "mode=700")?;
        world.start_daemon();
        Ok(Self {
            image,
            _copies: copies,
            site: Site::of(world),
            chance: Chance::new(seed),
        })
    }

    /// One cut, under load or while the daemon stops; sometimes more cuts during the next starts.
    fn cut_and_compare(&mut self, runner_dies: bool, during_start: &mut u64) -> Vec<Finding> {
        let load = self.site.load();
        self.wait(50..1500);
        if self.chance.one_in(4) {
            self.site.push();
            self.wait(0..100);
        }
        if self.chance.one_in(5) {
            signal(self.site.world.daemon_pid(), "TERM");
            self.wait(0..100);
        }
        self.image.cut_power();
        // From here on the daemon runs without a disk.
        self.wait(0..50);
        self.site.world.kill_daemon();
        drop(load);
        if runner_dies {
            self.site.world.kill_runner();
        } else {
            self.site.hold_runner();
        }
        self.power_on();
        while self.chance.one_in(4) {
            self.site.world.spawn_daemon();
            self.wait(0..150);
            self.image.cut_power();
            self.site.world.kill_daemon();
            self.power_on();
            *during_start += 1;
        }
        let findings = self.site.restart();
        if runner_dies {
            self.site.world.run_runner();
            let ran = self.site.world.path("ran");
            let before = lines(&ran).len();
            eventually("the new runner's work", || lines(&ran).len() > before);
        } else {
            self.site.release_runner();
        }
        findings
    }

    fn power_on(&self) {
        self.image.unmount();
        self.image.mount().unwrap();
    }

    fn wait(&mut self, range: Range<u64>) {
        std::thread::sleep(self.chance.milliseconds(range));
    }
}
