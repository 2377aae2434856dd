//! The example `recon`: two finders feed one list, and only new hosts are probed.

use std::path::Path;

use crate::schedules;
use crate::support::World;

const WORKFLOW: &str = include_str!("../../examples/recon/workflows/recon.yaml");
const NAME: &str = "recon";

/// A world whose runner has the example's tools on its PATH, and the folder of the tools.
fn world() -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("recon.yaml", Some(&schedules::without(WORKFLOW)))]);
    world.start_daemon();
    world.sync();
    let tools = world.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/recon/tools");
    for entry in std::fs::read_dir(examples).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), tools.join(entry.file_name())).unwrap();
    }
    let inherited = std::env::var("PATH").unwrap();
    let bin = world.path("bin");
    let path = format!("{}:{}:{inherited}", tools.display(), bin.display());
    world.start_runner_with(2, &[("PATH", &path)]);
    world
}

/// The newest job of a scan that started by itself, and the only file of its artifact.
fn found(world: &World, scan: &str, artifact: &str) -> String {
    let job = world.followed_by(NAME, scan);
    let (_, content) = world.artifact(&job, artifact).pop_first().unwrap();
    String::from_utf8(content).unwrap()
}

#[test]
fn only_hosts_that_were_not_probed_before_are_probed() {
    let world = world();
    world.succeed(NAME, "certificates", &[]);
    let of_certificates = "shop.example.org\nstaging.shop.example.org\nwww.example.org\n";
    assert_eq!(found(&world, "merge", "hosts"), of_certificates);
    assert_eq!(found(&world, "probe", "new"), of_certificates);
    assert!(found(&world, "probe", "answers").contains("shop.example.org\t200\t"));

    // The other finder adds its own names and repeats one name.
    world.succeed(NAME, "dictionary", &[]);
    assert_eq!(found(&world, "merge", "hosts").lines().count(), 5);
    assert_eq!(
        found(&world, "probe", "new"),
        "mail.example.org\nvpn.example.org\n"
    );
    assert_eq!(
        found(&world, "probe", "answers"),
        "mail.example.org\t200\tWelcome to mail.example.org\nvpn.example.org\t401\tSign in\n"
    );

    // No new names: the lists are merged again, and no probe follows.
    world.succeed(NAME, "dictionary", &[]);
    assert_eq!(found(&world, "merge", "hosts").lines().count(), 5);
    let counts = ["merge", "probe"].map(|scan| world.jobs_of(NAME, scan).len());
    assert_eq!(counts, [3, 2]);

    // A probe fails once. Its host is probed after the next merge, although this merge has no new host.
    let answers = world.path("tools/probe-hosts");
    let aside = world.path("tools/aside");
    std::fs::write(
        world.path("tools/certificates.txt"),
        "shop.example.org\nnew.example.org\n",
    )
    .unwrap();
    std::fs::rename(&answers, &aside).unwrap();
    world.succeed(NAME, "certificates", &[]);
    world.followed_by(NAME, "merge");
    let failed = world.jobs_of(NAME, "probe").swap_remove(0);
    assert_eq!(world.finished(&failed)["state"], "failed");
    std::fs::rename(&aside, &answers).unwrap();
    world.succeed(NAME, "certificates", &[]);
    world.followed_by(NAME, "merge");
    assert_eq!(found(&world, "probe", "new"), "new.example.org\n");
    assert_eq!(
        found(&world, "probe", "answers"),
        "new.example.org\t200\tWelcome to new.example.org\n"
    );
}
