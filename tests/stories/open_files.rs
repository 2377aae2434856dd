//! Connections are open files. Any number of connections leaves enough files for commits.

use std::io::Read;
use std::net::TcpStream;

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::listeners::Connection;
use crate::machine::skip;
use crate::support::{PATIENCE, World};

const LIMIT: u64 = 1_024;
const IDLE: u64 = 1_100;

/// Starts the daemon with this limit of open files, which it cannot raise.
fn limited(limit: u64) -> World {
    let mut world = World::new();
    world.init_repository();
    let shell = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    world.daemon_through = vec!["sh".to_owned(), "-c".to_owned(), shell];
    world
}

#[test]
fn a_thousand_idle_connections_leave_enough_files_for_commits() {
    let mut own = getrlimit(Resource::Nofile);
    own.current = own.maximum;
    setrlimit(Resource::Nofile, own).unwrap();
    if own.maximum.is_some_and(|most| most < LIMIT + IDLE) {
        return skip("idle connections", "this test may not open enough of them");
    }
    let mut world = limited(LIMIT);
    world.push(&[]);
    world.start_daemon();
    let mut writer = Connection::open(&world, &world.token().unwrap());
    let write = |writer: &mut Connection, name: &str| {
        let token = json!({ "name": name, "scopes": ["job:read"] });
        writer.call("POST", "/v0/tokens", &token);
    };
    write(&mut writer, "first");
    let connect = |_| TcpStream::connect(world.address()).unwrap();
    let mut idle: Vec<TcpStream> = (0..IDLE).map(connect).collect();
    let last = idle.last_mut().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    // When the last connection is closed, all others were accepted. A reset also closes it.
    assert!(!matches!(last.read(&mut [0]), Ok(1..)));
    for number in 0..50 {
        write(&mut writer, &format!("later-{number}"));
    }
    writer.call("POST", "/v0/sources/main/sync?wait=true", &json!({}));
    drop(idle);
    assert!(world.is_daemon_alive(), "{}", world.daemon_log());
    world.stop_daemon();
}

#[test]
fn a_daemon_with_a_too_low_file_limit_does_not_start() {
    let mut world = limited(100);
    world.spawn_daemon();
    assert!(!world.await_daemon());
    assert_eq!(world.daemon_ended().code(), Some(2));
    let log = world.daemon_log();
    assert!(
        log.contains("at most 100 files may be open") && log.contains("ulimit -n"),
        "{log}"
    );
    assert!(!world.path("state").exists());
}
