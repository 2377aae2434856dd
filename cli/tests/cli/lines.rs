//! `job artifact diff --lines`: the lines that only the newer artifact has.

use serde_json::json;

use crate::artifacts::zip;
use crate::everscan::{Run, run_at};
use crate::fixtures::id;
use crate::server::{Reply, Server};

type Files<'a> = &'a [(&'a str, &'a str)];

/// A daemon with the artifact `hosts` of job 1 and its older version of job 2.
fn daemon(newer: Files<'_>, older: Files<'_>) -> Server {
    let (newer, older) = (zip(newer), zip(older));
    Server::answering(move |line| {
        if line.contains("/diff?") {
            Reply::json(&json!({
                "artifact": "hosts", "from": id(2), "to": id(1), "same": newer == older,
                "added": 0, "removed": 0, "changed": 0, "unchanged": 0, "files": [],
            }))
        } else if line == format!("GET /v0/jobs/{}/artifacts/hosts", id(1)) {
            Reply::content(newer.clone())
        } else {
            assert_eq!(line, format!("GET /v0/jobs/{}/artifacts/hosts", id(2)));
            Reply::content(older.clone())
        }
    })
}

fn lines(server: &Server, more: &str) -> Run {
    let line = format!("job artifact diff {} -a hosts --against {}", id(1), id(2));
    run_at(&server.url, &format!("{line} --lines {more}"))
}

#[test]
fn lines_are_compared_per_file_as_sets_and_keep_their_order() {
    let newer = [
        ("b.txt", "two\nnew b\none\nnew b\n\nlast"),
        ("a.txt", "one\nnew a\n"),
        ("only/new.txt", "one\r\ntwo\n"),
        ("image.png", "\u{0}\nnew\n"),
    ];
    let older = [
        ("b.txt", "one\ntwo"),
        ("a.txt", "one\ngone\n"),
        ("old.txt", "new a\n"),
        ("image.png", "\u{0}\n"),
    ];
    let server = daemon(&newer, &older);
    let output = lines(&server, "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stdout, "new a\nnew b\n\nlast\none\r\ntwo\n");
    assert_eq!(output.stderr, "image.png is not text; it is left out\n");

    let output = lines(&server, "--file b.txt");
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "new b\n\nlast\n")
    );
    assert_eq!(output.stderr, "");
    assert_eq!(lines(&server, "--file old.txt").stdout, "");
}

#[test]
fn artifacts_with_the_same_content_are_not_downloaded() {
    let files = [("a.txt", "one\n")];
    let server = daemon(&files, &files);
    let output = lines(&server, "");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert_eq!(server.lines().len(), 1, "{:?}", server.lines());
}

#[test]
fn a_file_that_cannot_be_compared_prints_nothing() {
    let long = format!("short\n{}\n", "x".repeat(1024 * 1024 + 1));
    let fits = "x".repeat(1024 * 1024);
    let newer = [
        ("a.txt", "new\n"),
        ("fits.txt", fits.as_str()),
        ("long.txt", long.as_str()),
        ("image.png", "\u{0}"),
    ];
    let server = daemon(&newer, &[("a.txt", "")]);
    for (more, exit, expected) in [
        ("", 1, "long.txt has a line of more than 1 MiB"),
        ("--file image.png", 1, "image.png is not text"),
        ("--file a.tx", 7, "hosts has no file \"a.tx\""),
    ] {
        let output = lines(&server, more);
        assert_eq!((output.code, output.stdout.as_str()), (exit, ""), "{more}");
        assert!(output.stderr.contains(expected), "{}", output.stderr);
        assert!(output.stderr.contains("hint: "), "{}", output.stderr);
    }
    assert_eq!(
        lines(&server, "--file fits.txt").stdout.len(),
        fits.len() + 1
    );
}
