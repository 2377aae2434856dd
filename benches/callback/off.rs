//! A daemon without callback servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::figures::memory;
use crate::support::World;

pub(crate) fn run() {
    let earlier = std::env::args().skip_while(|argument| argument != "--program");
    let earlier = earlier.skip(1).map(PathBuf::from).next();
    for (what, program) in [("this build", None), ("earlier build", earlier)] {
        if what == "earlier build" && program.is_none() {
            println!("  SKIP an earlier build: none is named with --program");
            continue;
        }
        idle(what, program.as_deref());
    }
}

fn idle(what: &str, program: Option<&Path>) {
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    if let Some(program) = program {
        let link = world.path("bin/everscand");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(program.canonicalize().unwrap(), link).unwrap();
    }
    world.init_repository();
    world.start_daemon();
    world.sync();
    std::thread::sleep(Duration::from_secs(2));
    let of = |folder: &str| {
        let entries = std::fs::read_dir(format!("/proc/{}/{folder}", world.daemon_pid())).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let named = |path: &PathBuf| std::fs::read_to_string(path.join("comm")).unwrap_or_default();
    let tasks = of("task");
    let hearing = tasks
        .iter()
        .filter(|task| named(task).trim() == "callbacks");
    let is_socket = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    println!(
        "  {what}: {} threads, {} of them for callbacks; {} sockets; memory {:.1} MB",
        tasks.len(),
        hearing.count(),
        of("fd").iter().filter(|path| is_socket(path)).count(),
        memory(world.daemon_pid(), "VmRSS:") / 1024.0
    );
}
