//! Imitates the requests of a browser with an open page.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::connection::{Connection, Target};

/// The minimum time between two fetches of a page: at first, and after this many fetches without a rest. As in
/// `live.js`.
const PAUSE: Duration = Duration::from_millis(250);
const BUSY_PAUSE: Duration = Duration::from_secs(1);
const BUSY_AFTER: u32 = 8;
/// A page that was not fetched for this time has rested.
const REST: Duration = Duration::from_millis(1500);

/// A signed-in browser.
#[derive(Clone)]
pub(crate) struct Reader {
    target: Target,
    cookie: String,
}

impl Reader {
    pub(crate) async fn sign_in(target: &Target) -> Self {
        let body = format!(r#"{{"token":"{}"}}"#, target.token);
        let request = format!(
            "POST /v0/sessions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            target.address,
            body.len()
        );
        let answer = target.connect().await.ask(request.as_bytes()).await;
        Self {
            target: target.clone(),
            cookie: answer.cookie.expect("a new session has a cookie"),
        }
    }

    fn request(&self, path: &str) -> Vec<u8> {
        format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n\r\n",
            self.target.address, self.cookie
        )
        .into_bytes()
    }

    /// Fetches a page again, like the script.
    fn renewal(&self, path: &str) -> Vec<u8> {
        let mut request = self.request(path);
        request.truncate(request.len() - 2);
        request.extend_from_slice(b"accept: text/html\r\nprefer: wait=1\r\n\r\n");
        request
    }

    /// An open stream of changes.
    pub(crate) async fn stream(&self) -> Connection {
        let mut connection = self.target.connect().await;
        connection.send(&self.request("/live")).await;
        assert_eq!(connection.head().await.status, 200);
        connection
    }

    /// Listens and fetches the page again after each change, like the script. `fetched` gets the time and the bytes of
    /// each fetch. Never ends: abort it.
    pub(crate) async fn follow(self, path: &str, fetched: impl Fn(Duration, usize)) {
        let mut stream = self.stream().await;
        let (sender, mut changed) = watch::channel(());
        let listen = async move {
            loop {
                stream.event().await;
                sender.send_replace(());
            }
        };
        let (request, mut connection) = (self.renewal(path), self.target.connect().await);
        let fetch = async move {
            let (mut last, mut streak) = (None::<Instant>, 0);
            while changed.changed().await.is_ok() {
                let gap = last.map_or(Duration::MAX, |last| last.elapsed());
                streak = if gap < REST { streak + 1 } else { 0 };
                let pause = match streak > BUSY_AFTER {
                    true => BUSY_PAUSE,
                    false => PAUSE,
                };
                tokio::time::sleep(pause.saturating_sub(gap)).await;
                changed.mark_unchanged();
                let begun = Instant::now();
                last = Some(begun);
                let answer = connection.ask(&request).await;
                assert_eq!(answer.status, 200, "{path}");
                fetched(begun.elapsed(), answer.body.len());
            }
        };
        tokio::join!(listen, fetch);
    }
}
