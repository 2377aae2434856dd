//! A name server that changes its answer between the check of an address and the connection.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use tokio::net::{TcpListener, UdpSocket};

use super::sink::{status, take_one};
use super::*;

/// Set in the process that has a network and a name server of its own.
const INSIDE: &str = "EVERSCAN_TEST_INSIDE";

/// A public address, which the network of this test has. No packet leaves it.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    if std::env::var_os(INSIDE).is_some() {
        return story().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let servers = file("servers", "nameserver 127.0.0.1\n");
    let switch = file("switch", "hosts: dns\n");
    let alone = |command: &str| {
        let mut unshare = Command::new("unshare");
        let world = format!(
            "ip link set lo up && ip address add {PUBLIC}/32 dev lo \
             && mount --bind \"$SERVERS\" /etc/resolv.conf \
             && mount --bind \"$SWITCH\" /etc/nsswitch.conf"
        );
        unshare.args(["--map-root-user", "--net", "--mount", "--", "sh", "-c"]);
        unshare.arg(format!("{world} && {command}"));
        unshare.env("SERVERS", &servers).env("SWITCH", &switch);
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
    let output = alone("exec \"$PROGRAM\" --exact \"$STORY\" --nocapture")
        .env(INSIDE, "1")
        .env("PROGRAM", std::env::current_exe().unwrap())
        .env(
            "STORY",
            "rebinding::a_connection_goes_to_the_address_that_was_checked",
        )
        .output()
        .unwrap();
    std::io::stderr().write_all(&output.stderr).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}

async fn story() {
    let server = UdpSocket::bind("127.0.0.1:53").await.unwrap();
    tokio::spawn(name_server(server));
    let public = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let port = public.local_addr().unwrap().port();
    let private = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    let (public, mut private) = [public, private]
        .map(|listener| take_one(listener, status("204 No Content"), ""))
        .into();
    let target = webhook(&format!("http://rebound.example:{port}/"));
    let settings = settings(&[], PATIENCE);
    let outcome = send_with(&settings, &target, KEY, &message()).await;
    assert_eq!(outcome, delivered("204"));
    tokio::select! {
        request = public => assert_eq!(request.unwrap().line, "POST / HTTP/1.1"),
        request = &mut private => panic!("{request:?} came to this machine"),
    }
    // The next message asks again, and its address is checked again.
    let reason = refused(send_with(&settings, &target, KEY, &message()).await);
    assert!(reason.contains("add `127.0.0.1/32`"), "{reason}");
    assert!(!private.is_finished());
}

/// Answers with the public address once, and with the one of this machine ever after.
async fn name_server(socket: UdpSocket) {
    let mut address = PUBLIC;
    loop {
        let mut query = [0; 512];
        let (length, client): (usize, SocketAddr) = socket.recv_from(&mut query).await.unwrap();
        let query = &query[..length];
        // Behind the head of 12 bytes: labels up to an empty one, type and class.
        let name = query[12..].iter().position(|byte| *byte == 0).unwrap() + 1;
        let question = &query[12..12 + name + 4];
        let is_ipv4 = question[name..] == [0, 1, 0, 1];
        let head = [0x81, 0x80, 0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0];
        let mut answer = [&query[..2], &head, question].concat();
        if is_ipv4 {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(address.octets());
            address = Ipv4Addr::LOCALHOST;
        }
        socket.send_to(&answer, client).await.unwrap();
    }
}
