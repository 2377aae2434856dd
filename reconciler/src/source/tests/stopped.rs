//! A stop of the daemon while a source is looked at.

use std::io::Read;
use std::net::TcpListener;

use super::*;

#[tokio::test]
async fn a_stop_leaves_no_fetch_behind_that_waits_for_a_host_that_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let config = SourceConfig {
        location: Location::parse(&url).unwrap(),
        access: Access::default(),
        ..Scene::new().config()
    };
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, vec![config]).await;
    let accepted = tokio::task::spawn_blocking(move || listener.accept().unwrap().0);
    let mut connection = in_time("the call of git", accepted).await.unwrap();

    in_time("the stop", daemon.close()).await;
    // Nobody holds the other end any more, and nothing but the request was sent.
    let rest = tokio::task::spawn_blocking(move || connection.read_to_end(&mut Vec::new()));
    assert!(in_time("the end of git", rest).await.is_ok());
}
