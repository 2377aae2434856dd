//! Which addresses the daemon does not connect to.

use tokio::net::TcpListener;

use super::*;

#[tokio::test]
async fn only_an_entry_of_the_configuration_opens_an_address_that_is_not_public() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let nothing = settings(&["127.0.0.2", "other:80", "10.0.0.0/24"], PATIENCE);
    for (host, address) in [
        ("127.0.0.1", "127.0.0.1/32"),
        ("localhost", "127.0.0.1/32"),
        ("127.1", "127.0.0.1/32"),
        ("2130706433", "127.0.0.1/32"),
        ("0x7f.1", "127.0.0.1/32"),
        ("[::ffff:127.0.0.1]", "127.0.0.1/32"),
        ("[::1]", "::1/128"),
        ("0.0.0.0", "0.0.0.0/32"),
        ("10.0.1.5", "10.0.1.5/32"),
        ("192.168.1.1", "192.168.1.1/32"),
        ("100.64.0.1", "100.64.0.1/32"),
        ("169.254.169.254", "169.254.169.254/32"),
        ("[::ffff:169.254.169.254]", "169.254.169.254/32"),
        ("[64:ff9b::a9fe:a9fe]", "64:ff9b::a9fe:a9fe/128"),
        ("[fd00:ec2::254]", "fd00:ec2::254/128"),
        ("[fe80::1]", "fe80::1/128"),
    ] {
        let target = webhook(&format!("http://{host}:{port}/"));
        let reason = refused(send_with(&nothing, &target, KEY, &message()).await);
        let advice = format!("add `{address}` or `");
        // Which address of `localhost` is the last one depends on the machine.
        let is_named = reason.contains(&advice) || host == "localhost";
        assert!(is_named, "{reason}");
        assert!(
            reason.ends_with(
                ":{port}` to `outbound.allow` in daemon.yaml"
                    .replace("{port}", &port.to_string())
                    .as_str()
            ),
            "{reason}"
        );
    }
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err(), "a connection was made: {accepted:?}");
}

#[tokio::test]
async fn an_entry_is_an_address_a_range_or_a_host_with_its_port() {
    for entry in ["127.0.0.1", "127.0.0.0/8", "LOCALHOST:{port}"] {
        let (url, taken) = sink::sink(sink::status("200 OK"), "").await;
        let port = url.trim_end_matches("/hook").rsplit(':').next().unwrap();
        let allowed = settings(&[&entry.replace("{port}", port)], PATIENCE);
        let target = webhook(&format!("http://localhost:{port}/hook?x=1"));
        let outcome = send_with(&allowed, &target, KEY, &message()).await;
        assert_eq!(outcome, delivered("200"), "{entry}");
        let request = taken.await.unwrap();
        assert_eq!(request.line, "POST /hook?x=1 HTTP/1.1");
        let host = format!("localhost:{port}");
        assert_eq!(request.header("host"), Some(host.as_str()));
    }
}

#[tokio::test]
async fn a_url_with_a_password_or_another_scheme_is_refused() {
    for url in [
        "ftp://127.0.0.1/",
        "http://u:hush@127.0.0.1/",
        "file:///etc/passwd",
        "x",
    ] {
        let reason = refused(send(&webhook(url), KEY, &message()).await);
        assert!(reason.starts_with("the URL is unusable"), "{reason}");
        assert!(!reason.contains("hush"), "{reason}");
    }
}
