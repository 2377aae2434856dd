//! A scan in the middle of a chain is renamed, and the chain continues.

use crate::support::World;

/// `resolve` runs after each list and passes it on. `report` waits for news of `resolve`, and
/// prints which results it has read.
const CHAIN: &str = "\
scans:
  hosts:
    on: { dispatch: { inputs: { list: {} } } }
    env: { LIST: '${{ inputs.list }}' }
    steps: [ { run: 'echo \"list=$LIST\" >> \"$SERVICE_STEP_OUTPUTS\"' } ]
  resolve:
    on: { expr: scans.hosts.is_available() }
    env: { LIST: '${{ scans.hosts.last_success().outputs.list }}' }
    steps: [ { run: echo \"$LIST\" > resolved.txt } ]
    artifacts: [ { name: resolved, paths: [resolved.txt] } ]
  report:
    on: { expr: \"scans.resolve.has_news('resolved')\" }
    env:
      NEW: ${{ scans.resolve[0].id }}
      OLD: \"${{ has(scans.resolve.processed().id) ? scans.resolve.processed().id : 'none' }}\"
      JOBS: ${{ scans.resolve.size() }}
    steps: [ { run: echo \"$NEW after $OLD of $JOBS\" } ]
";

#[test]
fn a_chain_continues_over_a_rename_and_news_stay_news() {
    let mut world = World::with_workflow("net.yaml", CHAIN);
    let hosts = |world: &World, list: &str| {
        world.succeed("net", "hosts", &[&format!("list={list}")]);
    };
    hosts(&world, "one");
    let old = world.followed_by("net", "resolve");
    let report = world.followed_by("net", "report");
    assert_eq!(world.log(&report), format!("{old} after none of 1\n"));

    let silent = CHAIN
        .replace("  resolve:\n", "  lookup:\n")
        .replace("scans.resolve", "scans.lookup");
    std::fs::write(world.path("silent.yaml"), &silent).unwrap();
    let before = "repository/workflows/net.yaml";
    let warned = world.everscan(&["workflow", "diff", before, "silent.yaml"]);
    let starts_anew = "starts without its results unless it has `renamed_from: resolve`";
    assert!(warned.contains(starts_anew), "{warned}");
    let renamed = silent.replace("  lookup:\n", "  lookup:\n    renamed_from: resolve\n");
    world.push(&[("net.yaml", Some(&renamed))]);
    world.sync();
    let printed = world.everscan(&["workflow", "diff", "net"]);
    assert!(printed.contains("keeps its results"), "{printed}");
    // The merged data is on disk.
    world.kill_daemon();
    world.start_daemon();

    hosts(&world, "one");
    world.followed_by("net", "lookup");
    assert_eq!(world.jobs_of("net", "report"), [report], "there is no news");
    hosts(&world, "two");
    let new = world.followed_by("net", "lookup");
    let report = world.followed_by("net", "report");
    assert_eq!(world.log(&report), format!("{new} after {old} of 3\n"));

    assert_eq!(world.jobs_of("net", "lookup").len(), 2);
    assert_eq!(world.jobs_of("net", "resolve"), [old]);
    let why = |scan| world.json(&["scan", "why", "net", scan]);
    assert_eq!(why("lookup")["renamed_from"], "resolve");
    assert_eq!(why("resolve")["renamed_to"], "lookup");
}
