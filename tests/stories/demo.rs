//! The demonstration of the README does what it says.

use crate::support::World;

#[test]
fn the_demo_shows_the_loop_and_leaves_nothing_behind() {
    let world = World::new();
    let temporary = world.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = world
        .command("everscand")
        .arg("demo")
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for words in [
        "inventory succeeded",
        "scans.inventory.has_diff() = true",
        "serde_derive 1.0.229",
        "upgraded\titoa\t1.0.18\t1.0.19",
        "dependency-watch.yaml:",
        "unknown-reference",
        "report (1 file)",
        "job.json",
        "Done.",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
