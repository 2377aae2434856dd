//! An outside monitor hears of the daemon while all is well.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::support::{World, eventually};

#[test]
fn a_monitor_gets_heartbeats_and_changes_are_logged_once() {
    let monitor = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = monitor.local_addr().unwrap();
    let mut world = World::new();
    world.init_repository();
    world.daemon_config = Some(format!(
        "heartbeat: {{ url: 'http://{address}/ping/secret', every: 1s }}\noutbound: {{ allow: ['{address}'] }}\n"
    ));
    world.start_daemon();
    for status in ["200 OK", "500 No", "500 No", "204 Yes"] {
        let (mut stream, _) = monitor.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"GET /ping/secret HTTP/1.1\r\n"));
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
    }
    let count = |text: &str| world.daemon_log().matches(text).count();
    eventually("the last answer", || {
        count("the monitor answers heartbeats") == 2
    });
    assert_eq!(count("the heartbeat fails"), 1, "{}", world.daemon_log());
    assert_eq!(count("answered with 500"), 1);
    assert_eq!(count("secret"), 0);
}
