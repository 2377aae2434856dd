//! Vars and secrets: accepted and refused values, and who can see a secret.

use http::Method;
use serde_json::json;

use crate::client::Call;
use crate::service::{PLAIN, Service, text};

const USE: &str = "
scans:
  use:
    on: { dispatch: {} }
    env: { URL: '${{ vars.URL }}' }
    steps: [ { run: 'echo ${{ secrets.KEY }} ${{ secrets.LOST }}' } ]
";

#[tokio::test]
async fn a_project_is_found_by_its_name_and_its_id() {
    let service = Service::start().await;
    let code = |path: &str| match path.starts_with("nothing") {
        true => "project_not_found",
        false => "not_found",
    };
    let shown = service.get("/v0/projects/main").await.expect(200);
    let by_id = format!("/v0/projects/{}", text(&shown["id"]));
    assert_eq!(service.get(&by_id).await.expect(200), shown);
    for path in [
        "nothing",
        "nothing/vars",
        "nothing/secrets",
        "nothing/vars/A",
        "main/vars/A",
    ] {
        let answer = service.get(&format!("/v0/projects/{path}")).await;
        answer.problem(404, code(path));
    }
    for path in [
        "nothing/vars/A",
        "nothing/secrets/A",
        "main/vars/A",
        "main/secrets/A",
    ] {
        let call = Call::new(Method::DELETE, format!("/v0/projects/{path}"));
        service.admin(call).await.problem(404, code(path));
    }
}

#[tokio::test]
async fn names_and_values_outside_their_limits_are_refused() {
    let service = Service::start().await;
    for path in ["vars/a-b", "vars/in", "vars/1", "secrets/a%20b"] {
        service
            .set(path, "value")
            .await
            .problem(400, "invalid_request");
    }
    let largest = "\u{1}".repeat(64 * 1024);
    service.set("secrets/LARGE", &largest).await.expect(200);
    let larger = format!("{largest}x");
    service
        .set("secrets/LARGE", &larger)
        .await
        .problem(400, "invalid_request");
    let short = service.set("secrets/SHORT", "ab").await;
    let short = short.problem(400, "invalid_request");
    assert!(
        short["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("masked"),
        "{short}"
    );
    let call = Call::new(Method::PUT, "/v0/projects/main/vars/A");
    let answer = service.admin(call.json(&json!({"value": 3}))).await;
    answer.problem(400, "invalid_request");
}

#[tokio::test]
async fn a_secret_is_sent_only_to_workers_of_jobs_that_name_it() {
    let service = Service::start().await;
    service.push(&[("workflows/use.yaml", USE)]).await;
    service
        .set("vars/URL", "https://localhost")
        .await
        .expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    service
        .set("secrets/OTHER", "correct horse")
        .await
        .expect(200);
    let dispatch = "/v0/workflows/use/scans/use/dispatch";
    let answer = service.post(dispatch, &json!({})).await.expect(202);
    let job = text(&answer["job"]["id"]);
    let runner = service.register("one", &[], 1).await;
    let worker = service.claim(&runner, &[]).await;
    let call = worker.call(Method::POST, &worker.path("resolve"));
    let answer = call.send(service.address).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let assignment = answer.expect(200);
    assert_eq!(assignment["secrets"], json!({"KEY": "hunter2"}));
    assert_eq!(
        assignment["context"]["vars"],
        json!({"URL": "https://localhost"})
    );
    assert_eq!(
        assignment["missing"],
        json!({"secrets.LOST": "is not set in project main (everscan secret set LOST)"})
    );
    for path in [
        "/v0/projects/main/secrets".to_owned(),
        "/v0/projects/main".to_owned(),
        "/v0/jobs".to_owned(),
        format!("/v0/jobs/{job}"),
        format!("/v0/jobs/{job}/logs"),
    ] {
        let shown = service.get(&path).await;
        assert!(!shown.text().contains("hunter2"), "{path}");
    }
    let values = service.get("/v0/projects/main/vars").await;
    assert!(
        !values.text().contains("https://localhost"),
        "a list shows no values"
    );
    service
        .get("/v0/projects/main/secrets/KEY")
        .await
        .problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_name_lists_the_scans_that_use_it_and_a_project_lists_missing_names() {
    let service = Service::follow(&["main", "other"]).await;
    service.push(&[("workflows/use.yaml", USE)]).await;
    service.set("vars/UNUSED", "x").await.expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    let by_use = json!([{"workflow": "main/use", "scan": "use"}]);
    let project = service.get("/v0/projects/main").await.expect(200);
    assert_eq!(
        project["missing_vars"],
        json!([{"name": "URL", "used_by": by_use}])
    );
    assert_eq!(
        project["missing_secrets"],
        json!([{"name": "LOST", "used_by": by_use}])
    );
    let vars = service.get("/v0/projects/main/vars").await.expect(200);
    assert_eq!(vars["items"][0]["used_by"], json!([]));
    let secrets = service.get("/v0/projects/main/secrets").await.expect(200);
    assert_eq!(secrets["items"][0]["used_by"], by_use);
    let set = service
        .set("vars/URL", "https://localhost")
        .await
        .expect(200);
    assert_eq!(set["used_by"], by_use);
    let shown = service.get("/v0/projects/main/vars/URL").await.expect(200);
    assert_eq!(shown["used_by"], by_use);
    // Workflows of another project that use the same names do not count.
    let other = service.get("/v0/projects/other").await.expect(200);
    assert_eq!(other.get("missing_vars"), None);
    // Retired workflows do not count either.
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    let project = service.get("/v0/projects/main").await.expect(200);
    assert_eq!(project.get("missing_secrets"), None);
}

#[tokio::test]
async fn the_check_of_a_secret_lists_masked_encodings_without_the_value() {
    let service = Service::start().await;
    let value = "first line\nab\nlast line\nname: ci";
    service.set("secrets/KEY", value).await.expect(200);
    let path = "/v0/projects/main/secrets/KEY/masking";
    let answer = service.get(path).await;
    let shown = answer.expect(200);
    let encodings = shown["encodings"].as_array().unwrap();
    let of = |name: &str| {
        let found = encodings.iter().find(|it| it["encoding"] == name);
        found.unwrap().clone()
    };
    assert_eq!(of("base64"), json!({"encoding": "base64", "masked": true}));
    assert_eq!(
        of("lines"),
        json!({"encoding": "lines", "masked": false, "reason": "too_short"})
    );
    assert_eq!(
        of("reversed"),
        json!({"encoding": "reversed", "masked": false, "reason": "not_recognised"})
    );
    assert_eq!(shown["short_lines"], json!([2, 4]));
    assert!(!answer.text().contains("first") && !answer.text().contains("last"));
    let missing = service.get("/v0/projects/main/secrets/GONE/masking").await;
    missing.problem(404, "not_found");
}

fn edit(method: Method, path: &str, condition: (&str, &str)) -> Call {
    Call::new(method, format!("/v0/projects/main/{path}")).header(condition.0, condition.1)
}

#[tokio::test]
async fn an_edit_of_an_outdated_version_is_refused() {
    let service = Service::start().await;
    for (path, value) in [("vars/URL", "first"), ("secrets/KEY", "hunter2")] {
        let put = |condition| edit(Method::PUT, path, condition).json(&json!({"value": value}));
        let lost = service.admin(put(("if-match", "*"))).await;
        lost.problem(412, "precondition_failed");
        assert_eq!(lost.header("etag"), None);
        let made = service.admin(put(("if-none-match", "*"))).await;
        assert_eq!((made.status, made.header("etag")), (200, Some("\"1\"")));
        let again = service.admin(put(("if-none-match", "*"))).await;
        let problem = again.problem(412, "precondition_failed");
        assert_eq!(again.header("etag"), Some("\"1\""));
        assert!(text(&problem["hint"]).contains("version 1"), "{problem}");
        service.set(path, "another one").await.expect(200);
        let late = service.admin(put(("if-match", "\"1\""))).await;
        late.problem(412, "precondition_failed");
        let delete = |tag| edit(Method::DELETE, path, ("if-match", tag));
        let late = service.admin(delete("\"1\"")).await;
        late.problem(412, "precondition_failed");
        let weak = service.admin(delete("W/\"2\"")).await;
        weak.problem(412, "precondition_failed");
        let bare = service.admin(delete("2")).await;
        bare.problem(400, "invalid_request");
        assert_eq!(service.admin(delete("\"2\"")).await.status, 204);
        let gone = service.admin(delete("\"2\"")).await;
        gone.problem(404, "not_found");
    }
    service.set("vars/URL", "third").await.expect(200);
    let shown = service.get("/v0/projects/main/vars/URL").await;
    assert_eq!(shown.header("etag"), Some("\"3\""));
    assert_eq!(shown.json()["version"], 3);
}

#[tokio::test]
async fn only_one_of_two_writers_with_the_same_version_succeeds() {
    let service = Service::start().await;
    service.set("vars/COUNT", "0").await.expect(200);
    let path = "/v0/projects/main/vars/COUNT";
    for round in 0..20 {
        let read = service.get(path).await;
        let tag = read.header("etag").unwrap();
        let write = |who: &str| {
            let value = json!({"value": format!("{round} {who}")});
            service.admin(edit(Method::PUT, "vars/COUNT", ("if-match", tag)).json(&value))
        };
        let (one, other) = tokio::join!(write("one"), write("other"));
        let (winner, who) = match (one.status, other.status) {
            (200, 412) => (one, "one"),
            (412, 200) => (other, "other"),
            both => panic!("{both:?}"),
        };
        let now = service.get(path).await;
        assert_eq!(now.json()["value"], format!("{round} {who}"));
        assert_eq!(now.header("etag"), winner.header("etag"));
    }
}
