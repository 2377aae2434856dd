//! A stop of the daemon while a source is polled.

use std::io::Read;
use std::net::TcpListener;

use super::*;

#[tokio::test]
async fn a_stop_ends_a_fetch_from_a_host_that_hangs() {
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
    // The other end is closed, and only the request was sent.
    let rest = tokio::task::spawn_blocking(move || connection.read_to_end(&mut Vec::new()));
    assert!(in_time("the end of git", rest).await.is_ok());
}
