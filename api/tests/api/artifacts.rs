//! Artifacts: uploaded by workers, downloaded by users as a whole or in part.

use std::fs;
use std::path::PathBuf;

use http::Method;
use serde_json::json;

use crate::client::{Answer, Call, Raw};
use crate::service::{Claimed, PLAIN, Service, both_steps, text};

/// The number of temporary files, after the files of finished uploads were moved.
pub(crate) async fn unfinished(service: &Service) -> usize {
    service.handle.state().settled().await.unwrap();
    fs::read_dir(service.root().join("tmp")).map_or(0, Iterator::count)
}

async fn stored(service: &Service) -> (Claimed, String) {
    let (_, worker) = service.claimed("one").await;
    let answer = worker.upload("out", b"0123456789").send(service.address);
    let artifact = answer.await.expect(200);
    (worker, text(&artifact["sha256"]))
}

async fn part(service: &Service, worker: &Claimed, headers: &[(&str, &str)]) -> Answer {
    let mut call = Call::get(worker.path("artifacts/out"));
    for (name, value) in headers {
        call = call.header(name, value);
    }
    service.admin(call).await
}

#[tokio::test]
async fn an_artifact_is_found_by_name_and_by_id_while_the_job_runs_and_afterwards() {
    let service = Service::start().await;
    let (worker, sha256) = stored(&service).await;
    let list = service.get(&worker.path("artifacts")).await.expect(200);
    let id = text(&list["items"][0]["id"]);
    for is_over in [false, true] {
        if is_over {
            service.complete(&worker, 0).await.expect(200);
        }
        for name in ["out", id.as_str()] {
            let answer = service
                .get(&worker.path(&format!("artifacts/{name}")))
                .await;
            assert_eq!((answer.status, answer.text()), (200, "0123456789"));
            assert_eq!(answer.header("etag"), Some(&*format!("\"{sha256}\"")));
            assert_eq!(answer.header("content-type"), Some("application/zip"));
            assert_eq!(answer.header("content-length"), Some("10"));
            assert_eq!(answer.header("accept-ranges"), Some("bytes"));
            let disposition = answer.header("content-disposition");
            assert_eq!(disposition, Some("attachment; filename=\"out.zip\""));
        }
    }
    let answer = service.get(&worker.path("artifacts/more")).await;
    let problem = answer.problem(404, "not_found");
    assert_eq!(problem["hint"], "there are: out");
}

#[tokio::test]
async fn the_end_of_a_name_may_be_left_out_if_no_other_artifact_is_called_so() {
    let service = Service::start().await;
    let artifacts =
        "artifacts: [ { name: out, paths: [a] }, { name: out.zip, paths: [b] } ], steps:";
    let file = PLAIN.replace("steps:", artifacts);
    service.push(&[("workflows/pipeline.yaml", &file)]).await;
    service.dispatch("only").await;
    let runner = service.register("one", &[], 1).await;
    let worker = service.claim(&runner, &[]).await;
    let path = worker.path("artifacts/out");
    worker
        .upload("out.zip", b"long")
        .send(service.address)
        .await
        .expect(200);
    let found = service.get(&path).await;
    assert_eq!((found.status, found.text()), (200, "long"));
    worker
        .upload("out", b"short")
        .send(service.address)
        .await
        .expect(200);
    assert_eq!(service.get(&path).await.text(), "short");
    let longer = service.get(&worker.path("artifacts/out.zip")).await;
    assert_eq!(longer.text(), "long");
}

#[tokio::test]
async fn an_artifact_reports_how_much_was_left_out() {
    let service = Service::start().await;
    let (worker, _) = stored(&service).await;
    let left_out = json!({
        "files": [{"name": "out/latest", "reason": "is a link to nothing"}],
        "more": 2,
    });
    let end = json!({
        "steps": both_steps(),
        "log_records": 0,
        "left_out": {"out": left_out},
    });
    let call = worker.call(Method::POST, &worker.path("complete"));
    let answer = call.json(&end).send(service.address).await.expect(200);
    assert_eq!(answer["state"], "succeeded");
    let path = format!("/v0/jobs/{}", worker.id);
    let job = service.get(&path).await.expect(200);
    assert_eq!(job["artifacts"][0]["left_out"], left_out);
    let list = service.get(&worker.path("artifacts")).await.expect(200);
    assert_eq!(list["items"][0]["left_out"], left_out);
}

#[tokio::test]
async fn a_range_request_gets_the_requested_part() {
    let service = Service::start().await;
    let (worker, sha256) = stored(&service).await;
    for (range, body, content_range) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=8-", "89", "bytes 8-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=9-999", "9", "bytes 9-9/10"),
    ] {
        let answer = part(&service, &worker, &[("range", range)]).await;
        assert_eq!((answer.status, answer.text()), (206, body), "{range}");
        assert_eq!(answer.header("content-range"), Some(content_range));
    }
    let answer = part(&service, &worker, &[("range", "bytes=10-")]).await;
    answer.problem(416, "range_not_satisfiable");
    assert_eq!(answer.header("content-range"), Some("bytes */10"));
    for range in ["bytes=0-1,4-5", "bytes=3-1", "lines=0-1", "nonsense"] {
        let answer = part(&service, &worker, &[("range", range)]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{range}");
    }
    // A range is useful only to a reader that has the rest of the same content.
    let etag = format!("\"{sha256}\"");
    for (tag, status) in [(etag.as_str(), 206), ("\"other\"", 200)] {
        let headers = [("range", "bytes=0-3"), ("if-range", tag)];
        assert_eq!(part(&service, &worker, &headers).await.status, status);
    }
}

#[tokio::test]
async fn a_reader_with_the_current_content_gets_304() {
    let service = Service::start().await;
    let (worker, sha256) = stored(&service).await;
    for (tags, status) in [
        (format!("\"{sha256}\""), 304),
        (format!("\"a\", W/\"{sha256}\""), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
    ] {
        let answer = part(&service, &worker, &[("if-none-match", &tags)]).await;
        assert_eq!(answer.status, status, "{tags}");
        assert_eq!(answer.body.is_empty(), status == 304);
    }
}

#[tokio::test]
async fn a_large_artifact_is_sent_completely_in_pieces() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let call = worker.call(Method::PUT, &worker.path("artifacts/out"));
    let call = call.header("x-content-digest", &format!("sha256:{}", "0".repeat(64)));
    call.bytes(bytes.clone())
        .send(service.address)
        .await
        .expect(200);
    let answer = service.get(&worker.path("artifacts/out")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == bytes, "the downloaded bytes differ");
}

/// The file of the only artifact.
fn file_of_artifact(service: &Service) -> PathBuf {
    let mut waiting = vec![service.root().join("jobs")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.parent().unwrap().ends_with("artifacts") {
                return path;
            }
        }
    }
    panic!("there is no artifact");
}

#[tokio::test]
async fn the_download_of_a_damaged_artifact_breaks_off() {
    for size in [1, 1_000_000] {
        let service = Service::start().await;
        let (_, worker) = service.claimed("one").await;
        let bytes = vec![b'x'; size];
        let call = worker.call(Method::PUT, &worker.path("artifacts/out"));
        let call = call.header("x-content-digest", &format!("sha256:{}", "0".repeat(64)));
        let answer = call.bytes(bytes.clone()).send(service.address);
        answer.await.expect(200);
        service.handle.state().settled().await.unwrap();
        let file = file_of_artifact(&service);
        let get = async |header: &str| {
            let head = format!(
                "GET {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{header}connection: close\r\n\r\n",
                worker.path("artifacts/out"),
                service.admin,
            );
            let mut raw = Raw::send(service.address, head).await;
            raw.head().await;
            raw.until_closed().await.len()
        };
        let download = async || {
            let (whole, ranged) = (get("").await, get("range: bytes=0-\r\n").await);
            assert_eq!(whole < size, ranged < size);
            whole.max(ranged)
        };
        assert_eq!(download().await, size);
        let mut damaged = bytes.clone();
        damaged[size / 2] ^= 1;
        fs::write(&file, damaged).unwrap();
        assert!(download().await < size);
        for left in [0, size / 2] {
            fs::write(&file, vec![b'x'; left]).unwrap();
            assert!(download().await <= left, "{left} of {size}");
        }
        fs::write(&file, &bytes).unwrap();
        // A part of a damaged file may still be useful, so a range is sent.
        let call = Call::get(worker.path("artifacts/out")).header("range", "bytes=0-0");
        assert_eq!(service.admin(call).await.status, 206);
    }
}

/// Few threads do file work. Many readers that do not read must not block all of them.
#[test]
fn readers_that_do_not_read_do_not_delay_others() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(4)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let service = Service::start().await;
        let (_, worker) = service.claimed("one").await;
        let call = worker.call(Method::PUT, &worker.path("artifacts/out"));
        let call = call.header("x-content-digest", &format!("sha256:{}", "0".repeat(64)));
        let stored = call.bytes(vec![7; 16 << 20]).send(service.address).await;
        stored.expect(200);
        let mut readers = Vec::new();
        for _ in 0..8 {
            let call = Call::get(worker.path("artifacts/out")).bearer(&service.admin);
            readers.push(call.open(service.address).await);
        }
        let answer = part(&service, &worker, &[("range", "bytes=0-1")]).await;
        assert_eq!(answer.status, 206);
        drop(readers);
    });
}

#[tokio::test]
async fn a_repeated_upload_gets_the_same_answer_and_other_content_is_refused() {
    let service = Service::start().await;
    let (worker, _) = stored(&service).await;
    let first = service.get(&worker.path("artifacts")).await.expect(200);
    let again = worker.upload("out", b"0123456789").send(service.address);
    assert_eq!(again.await.expect(200), first["items"][0]);
    let other = worker.upload("out", b"9876543210").send(service.address);
    other.await.problem(409, "artifact_mismatch");
    assert_eq!(part(&service, &worker, &[]).await.text(), "0123456789");
    assert_eq!(unfinished(&service).await, 0);
}

#[tokio::test]
async fn of_two_concurrent_uploads_only_the_successful_upload_is_stored() {
    let service = Service::start().await;
    for n in 0..10 {
        let (_, worker) = service.claimed(&format!("runner {n}")).await;
        let one = worker.upload("out", b"0123456789").send(service.address);
        let two = worker.upload("out", b"9876543210").send(service.address);
        let (one, two) = tokio::join!(one, two);
        let expected = match (one.status, two.status) {
            (200, 409) => "0123456789",
            (409, 200) => "9876543210",
            other => panic!("{other:?}"),
        };
        assert_eq!(part(&service, &worker, &[]).await.text(), expected);
    }
}

#[tokio::test]
async fn invalid_uploads_are_refused_before_the_content_is_sent() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let send = async |name: &str, digest: &str| {
        let head = format!(
            "PUT {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nx-content-digest: {digest}\r\n\
             content-length: 1000\r\n\r\n",
            worker.path(&format!("artifacts/{name}")),
            worker.token,
        );
        let mut raw = Raw::send(service.address, head).await;
        let head = raw.head().await;
        head.split(' ').nth(1).unwrap().to_owned()
    };
    let good = format!("sha256:{}", "a".repeat(64));
    for name in ["other", "..", "%2e%2e%2fout", "out%00", "OUT", "%20"] {
        assert_eq!(send(name, &good).await, "400", "{name}");
    }
    for digest in [
        "",
        "sha256:",
        &"a".repeat(64),
        &format!("sha256:{}", "a".repeat(63)),
        &format!("sha256:{}", "A".repeat(64)),
        &format!("sha512:{}", "a".repeat(64)),
    ] {
        assert_eq!(send("out", digest).await, "400", "{digest}");
    }
    assert_eq!(unfinished(&service).await, 0);
}

#[tokio::test]
async fn an_interrupted_upload_leaves_no_file() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let head = format!(
        "PUT {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nx-content-digest: sha256:{}\r\n\
         content-length: 1000\r\n\r\nthe beginning",
        worker.path("artifacts/out"),
        worker.token,
        "a".repeat(64),
    );
    let raw = Raw::send(service.address, head).await;
    while unfinished(&service).await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drop(raw);
    while unfinished(&service).await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let list = service.get(&worker.path("artifacts")).await.expect(200);
    assert_eq!(list, json!({"items": []}));
    worker
        .upload("out", b"whole")
        .send(service.address)
        .await
        .expect(200);
}
