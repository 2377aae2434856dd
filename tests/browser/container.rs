//! A daemon in a container with a published port: all callers have the address of the container's bridge.

use std::io::Write as _;
use std::process::Command;

use crate::browser::Browser;
use crate::support::World;

/// Set in the process that runs in a network of its own.
const INSIDE: &str = "EVERSCAN_STORY_INSIDE";

/// The address of the bridge. In the network of this story the daemon's callers have it.
const BRIDGE: &str = "172.17.0.1";

#[test]
fn addresses_that_count_as_this_machine_may_sign_in() {
    if std::env::var_os(INSIDE).is_some() {
        return story();
    }
    let alone = |command: &str| {
        let mut unshare = Command::new("unshare");
        let network = format!("ip link set lo up && ip address add {BRIDGE}/32 dev lo");
        unshare.args(["--map-root-user", "--net", "--", "sh", "-c"]);
        unshare.arg(format!("{network} && {command}"));
        unshare
    };
    let reason = match alone("true").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = reason {
        // Unlike the output of the macros, this can be seen also if the test succeeds.
        return writeln!(std::io::stderr(), "SKIP: no network of its own: {reason}").unwrap();
    }
    let name = "container::addresses_that_count_as_this_machine_may_sign_in";
    let output = alone("exec \"$PROGRAM\" --exact \"$STORY\" --nocapture")
        .env(INSIDE, "1")
        .env("PROGRAM", std::env::current_exe().unwrap())
        .env("STORY", name)
        .output()
        .unwrap();
    std::io::stderr().write_all(&output.stderr).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}

fn story() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.listen_at = "0.0.0.0";
    let config = "insecure_http: true\n";
    world.daemon_config = Some(config.to_owned());
    world.start_daemon();
    let port = world.url().rsplit_once(':').unwrap().1.to_owned();
    let published = format!("http://{BRIDGE}:{port}");
    world.url = published.clone();
    browser.open(&world, "/login");
    browser.fill("input[name=token]", &world.token().unwrap());
    browser.press("Sign in");
    browser.shows("main", "sessions need https");
    browser.shows("main", "--local-from");

    world.stop_daemon();
    world.daemon_config = Some(format!("{config}local_from: [172.17.0.0/16]\n"));
    world.start_daemon();
    world.url = published;
    browser.sign_in(&world);
    browser.open(&world, "/jobs");
    browser.shows("main", "No scan has run yet");

    let is_warned = |world: &World| world.daemon_log().contains("callers from the internet");
    assert!(!is_warned(&world));
    world.stop_daemon();
    world.daemon_config = Some(format!("{config}local_from: [172.17.0.1, '::/0']\n"));
    world.start_daemon();
    assert!(is_warned(&world), "{}", world.daemon_log());
}
