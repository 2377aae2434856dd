//! The files in artifacts, and the difference between the artifacts of two jobs.

use std::io::{Cursor, Write};

use model::Scope;
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::answers::check;
use crate::client::Call;
use crate::service::{Service, text};

/// A zip with these files.
pub(crate) fn packed(files: &[(&str, &str)]) -> &'static [u8] {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = SimpleFileOptions::default().large_file(*name == "large");
        zip.start_file(*name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.add_directory("folder/", SimpleFileOptions::default())
        .unwrap();
    zip.finish().unwrap().into_inner().leak()
}

/// A service with a finished job for each of these artifacts. Returns the ids of the jobs.
pub(crate) async fn with_artifacts(artifacts: &[&'static [u8]]) -> (Service, Vec<String>) {
    let service = Service::follow(&["main", "other"]).await;
    let runner = service.register("one", &[], 1).await;
    let mut jobs = Vec::new();
    for artifact in artifacts {
        service.dispatch("build").await;
        let worker = service.claim(&runner, &[]).await;
        worker
            .upload("out", artifact)
            .send(service.address)
            .await
            .expect(200);
        service.complete(&worker, 0).await.expect(200);
        jobs.push(worker.id);
    }
    (service, jobs)
}

#[tokio::test]
async fn the_files_of_an_artifact_are_listed_by_name() {
    let zip = packed(&[("large", "lots"), ("b/two", "22"), ("a", "")]);
    let (service, jobs) = with_artifacts(&[zip]).await;
    let path = format!("/v0/jobs/{}/artifacts/out/entries", jobs[0]);
    let answer = service.get(&path).await;
    answer.expect(200);
    check(&service, "artifacts/artifact_entries", &answer);
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service
            .get(&format!("{path}?limit=2{cursor}"))
            .await
            .expect(200);
        names.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| text(&file["name"])),
        );
        match page.get("next_cursor") {
            Some(next) => cursor = format!("&cursor={}", text(next)),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b/two", "large"]);
    let stranger = service.limited([Scope::JobRead], &["other"]).await;
    let answer = Call::get(&path)
        .bearer(&stranger)
        .send(service.address)
        .await;
    answer.problem(404, "not_found");
    let unknown = format!("/v0/jobs/{}/artifacts/more/entries", jobs[0]);
    service.get(&unknown).await.problem(404, "not_found");
}

#[tokio::test]
async fn the_difference_of_two_artifacts_lists_their_files() {
    let before = packed(&[("gone", "x"), ("same", "x"), ("other", "abc")]);
    let after = packed(&[("new", "x"), ("same", "x"), ("other", "abd")]);
    let (service, jobs) = with_artifacts(&[before, after]).await;
    let path = format!(
        "/v0/jobs/{}/artifacts/out/diff?against={}",
        jobs[1], jobs[0]
    );
    let answer = service.get(&path).await;
    answer.expect(200);
    check(&service, "artifacts/artifact_diff", &answer);
    let page = service.get(&format!("{path}&limit=1")).await.expect(200);
    assert_eq!(page["files"][0]["name"], "gone");
    let page = format!("{path}&limit=1&cursor={}", text(&page["next_cursor"]));
    let page = service.get(&page).await.expect(200);
    assert_eq!(
        (&page["files"][0]["name"], &page["removed"]),
        (&json!("new"), &json!(1))
    );
    let itself = format!("/v0/jobs/{0}/artifacts/out/diff?against={0}", jobs[0]);
    let itself = service.get(&itself).await.expect(200);
    assert_eq!(
        (&itself["files"], &itself["unchanged"]),
        (&json!([]), &json!(3))
    );

    let alone = format!("/v0/jobs/{}/artifacts/out/diff", jobs[1]);
    service.get(&alone).await.problem(400, "invalid_request");
    let unknown = format!("{alone}?against=11111111-1111-7111-8111-111111111111");
    service.get(&unknown).await.problem(404, "not_found");
}

#[tokio::test]
async fn listing_an_artifact_that_is_no_zip_or_was_removed_is_refused_with_the_reason() {
    let (service, jobs) = with_artifacts(&[&b"a zip"[..], packed(&[("a", "x")])]).await;
    let of = |job: &String| format!("/v0/jobs/{job}/artifacts/out");
    for path in [
        format!("{}/entries", of(&jobs[0])),
        format!("{}/diff?against={}", of(&jobs[0]), jobs[1]),
        format!("{}/diff?against={}", of(&jobs[1]), jobs[0]),
    ] {
        let problem = service.get(&path).await.problem(409, "artifact_unreadable");
        assert!(text(&problem["detail"]).contains(&jobs[0]), "{problem}");
    }
    let delete = Call::new(http::Method::DELETE, of(&jobs[1]));
    assert_eq!(service.admin(delete).await.status, 204);
    let gone = service.get(&format!("{}/entries", of(&jobs[1]))).await;
    gone.problem(410, "gone");
}
