//! The runners and workers that tests play.

use http::Method;
use serde_json::{Value, json};

use super::text;
use crate::client::Call;

/// A registered runner, as one process.
pub(crate) struct Runner {
    pub(crate) id: String,
    pub(crate) token: String,
    instance: &'static str,
}

/// A job that a worker executes.
pub(crate) struct Claimed {
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Runner {
    /// The runner in the answer to a registration.
    pub(crate) fn registered(answer: &Value) -> Self {
        Self {
            id: text(&answer["id"]),
            token: text(&answer["token"]),
            instance: "10000000-0000-4000-8000-000000000000",
        }
    }

    pub(crate) fn instance(&self) -> &str {
        self.instance
    }

    /// Another process with the same registration.
    pub(crate) fn copied(&self) -> Self {
        Self {
            id: self.id.clone(),
            token: self.token.clone(),
            instance: "20000000-0000-4000-8000-000000000000",
        }
    }

    /// Sends `hello` or `goodbye`.
    pub(crate) fn says(&self, word: &str) -> Call {
        Call::post(format!("/v0/runners/{word}"))
            .bearer(&self.token)
            .json(&json!({"version": "0.1.0", "instance": self.instance}))
    }

    /// A poll as raw bytes.
    pub(crate) fn raw_poll(&self) -> String {
        let body = json!({"instance": self.instance, "capacity": 1, "holding": []}).to_string();
        format!(
            "POST /v0/messages HTTP/1.1\r\nhost: everscan.test\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        )
    }

    pub(crate) fn poll(&self, capacity: usize, holding: &[&str]) -> Call {
        Call::post("/v0/messages").bearer(&self.token).json(&json!({
            "instance": self.instance, "capacity": capacity, "holding": holding,
        }))
    }
}

impl Claimed {
    /// A path below the path of the job.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v0/jobs/{}/{rest}", self.id)
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(method, path).bearer(&self.token)
    }

    /// Appends lines to the job's log.
    pub(crate) fn append(&self, from: u64, lines: &[&str]) -> Call {
        let records: Vec<Value> = lines
            .iter()
            .map(|line| {
                json!({"at": "2026-11-20T12:00:00Z", "step": 0, "stream": "stdout", "text": line})
            })
            .collect();
        self.call(Method::PATCH, &self.path(&format!("logs?from={from}")))
            .json(&Value::Array(records))
    }

    /// Uploads an artifact.
    pub(crate) fn upload(&self, name: &str, bytes: &'static [u8]) -> Call {
        self.call(Method::PUT, &self.path(&format!("artifacts/{name}")))
            .header("x-content-digest", &format!("sha256:{}", "ab".repeat(32)))
            .bytes(bytes)
    }
}

/// The job and token of an offer.
pub(crate) fn offered(message: &Value) -> Claimed {
    let offer = &message["job_assigned"];
    Claimed {
        id: text(&offer["id"]),
        token: text(&offer["token"]),
    }
}

/// The report of a worker after all steps of `build`.
pub(crate) fn both_steps() -> Value {
    json!([
        {
            "index": 0, "status": "succeeded", "outcome": "succeeded", "exit_code": 0,
            "started_at": "2026-11-20T12:00:00Z", "finished_at": "2026-11-20T12:00:01Z",
        },
        {"index": 1, "status": "skipped", "outcome": "skipped"},
    ])
}
