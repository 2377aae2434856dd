//! Signatures, checked by another implementation.

use super::peers::python;
use super::sink::{sink, status};
use super::*;

const VERIFY: &str = "
import json, sys
from standardwebhooks import Webhook
given = json.load(sys.stdin)
print(json.dumps(Webhook(given['key']).verify(given['body'], given['headers'])))
";

#[tokio::test]
async fn a_receiver_with_either_key_accepts_the_message() {
    let Some(python) = python().await else { return };
    let keys = [
        "whsec_bmV3IGtleSBuZXcga2V5IG5ldyBrZXk=",
        "whsec_b2xkIGtleSBvbGQga2V5IG9sZCBrZXk=",
    ];
    let (url, taken) = sink(status("200 OK"), "").await;
    let outcome = send(&webhook(&url), keys.join(" ").as_str(), &message()).await;
    assert_eq!(outcome, delivered("200"));
    let request = taken.await.unwrap();
    assert_eq!(
        request.header("webhook-id"),
        Some(message().id.to_string().as_str())
    );
    let verify = async |key: &str, body: &str| {
        let headers: serde_json::Map<_, _> = request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let given = json!({ "key": key, "body": body, "headers": headers });
        python.run(VERIFY, &given.to_string()).await
    };
    for key in keys {
        let verified = verify(key, &request.body).await.unwrap();
        let verified: serde_json::Value = serde_json::from_str(&verified).unwrap();
        assert_eq!(verified["type"], "problem");
        assert_eq!(verified["timestamp"], "2026-03-01T12:00:00.000Z");
        assert_eq!(verified["data"]["event"], json!({ "what": "opened" }));
        assert_eq!(verified["data"]["is_repeated"], false);
    }
    verify("whsec_b3RoZXIga2V5", &request.body)
        .await
        .unwrap_err();
    let changed = request.body.replace("nightly", "weekly");
    verify(keys[0], &changed).await.unwrap_err();
}

#[tokio::test]
async fn a_key_that_is_none_is_refused_and_not_shown() {
    for key in ["hush", "whsec_", "whsec_hush!"] {
        let target = webhook("http://127.0.0.1:1/");
        let reason = refused(send(&target, key, &message()).await);
        assert_eq!(reason, "a key is not `whsec_` and base64");
    }
}
