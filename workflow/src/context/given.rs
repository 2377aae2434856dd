//! Reads a context that a person wrote. Records of jobs and messages to runners may have unknown keys, but here an unknown key is
//! an error: it is probably a typing error, and ignoring it would change the result.

use serde::de::Error as _;

use super::Context;

impl Context {
    /// Reads a context from JSON. Unknown keys are errors. A byte order mark at the start is ignored, as in workflow files.
    ///
    /// # Errors
    /// If the text is invalid.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut json = serde_json::Deserializer::from_str(text);
        let mut unknown = None;
        let context = serde_ignored::deserialize(&mut json, |path| {
            // The library marks an optional value in a path with `?`.
            unknown.get_or_insert_with(|| path.to_string().replace(".?", ""));
        })?;
        json.end()?;
        match unknown {
            None => Ok(context),
            Some(path) => Err(serde_json::Error::custom(format!(
                "a context has no `{path}`"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::context::{
        ArtifactSummary, CallbackSummary, JobIdentity, JobSummary, News, Processed, ScanHistory,
        StepSummary,
    };
    use crate::dispatch::InputValue;

    /// A context with every key of the records of jobs.
    fn whole() -> Context {
        let time = "2026-11-20T10:00:00Z".parse().unwrap();
        let artifact = ArtifactSummary {
            checksum: "c".to_owned(),
            size: 1,
        };
        let job = JobSummary {
            id: "j".to_owned(),
            state: "succeeded".to_owned(),
            trigger: "cron".to_owned(),
            revision: "r".to_owned(),
            created_at: time,
            started_at: Some(time),
            finished_at: Some(time),
            artifacts: BTreeMap::from([("out".to_owned(), artifact)]),
            outputs: BTreeMap::from([("n".to_owned(), "3".to_owned())]),
        };
        let step = StepSummary {
            outputs: BTreeMap::from([("m".to_owned(), "4".to_owned())]),
        };
        let scan = ScanHistory {
            size: 1,
            jobs: vec![job],
            available: true,
            failed: true,
            successes: 1,
            newest_successes: vec![BTreeMap::from([("out".to_owned(), "c".to_owned())])],
            newest_success_ids: vec!["j".to_owned()],
            news: Some(News {
                processed: Some(Processed {
                    id: "i".to_owned(),
                    artifacts: BTreeMap::from([("out".to_owned(), "b".to_owned())]),
                }),
                declared: vec!["out".to_owned()],
            }),
        };
        Context {
            job: Some(JobIdentity {
                id: "j".to_owned(),
                name: "a".to_owned(),
            }),
            project: "p".to_owned(),
            workflow: "w".to_owned(),
            revision: "r".to_owned(),
            vars: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
            secrets: BTreeMap::new(),
            inputs: BTreeMap::from([
                (
                    "depth".to_owned(),
                    InputValue::Number("-3".parse().unwrap()),
                ),
                ("fast".to_owned(), InputValue::Bool(true)),
                (
                    "rate".to_owned(),
                    InputValue::Number("2.5".parse().unwrap()),
                ),
            ]),
            callback: CallbackSummary {
                server: "shop".to_owned(),
                count: 2,
                first: 3,
                last: 5,
                types: vec!["dns".to_owned()],
                job: "j".to_owned(),
            },
            scans: BTreeMap::from([("a".to_owned(), scan)]),
            steps: BTreeMap::from([("first".to_owned(), step)]),
            ok: true,
        }
    }

    #[test]
    fn the_context_of_a_job_is_read() {
        let text = serde_json::to_string(&whole()).unwrap();
        assert_eq!(Context::read(&text).unwrap(), whole());
    }

    #[test]
    fn an_unknown_or_repeated_key_and_a_value_of_another_type_are_errors() {
        let whole = serde_json::to_string(&whole()).unwrap();
        for (from, to, expected) in [
            (r#""ok":"#, r#""scan":{},"ok":"#, "a context has no `scan`"),
            (
                r#""available""#,
                r#""available":true,"availble""#,
                "a context has no `scans.a.availble`",
            ),
            (
                r#""trigger""#,
                r#""trigger":"cron","triger""#,
                "a context has no `scans.a.jobs.0.triger`",
            ),
            (
                r#""name""#,
                r#""name":"a","nme""#,
                "a context has no `job.nme`",
            ),
            (r#""trigger""#, r#""triger""#, "missing field `trigger` at"),
            (
                r#""ok":"#,
                r#""ok":true,"ok":"#,
                "duplicate field `ok` at line 1",
            ),
            (
                r#""fast":true"#,
                r#""a":"x","n":1e300"#,
                "expected a string, a boolean or a number of at most 15 digits at line 1",
            ),
            (
                r#""A":"1""#,
                r#""A":1"#,
                "invalid type: integer `1`, expected a string at line 1",
            ),
            (
                r#""started_at":"2026-11-20T10:00:00Z""#,
                r#""started_at":"today""#,
                "input contains invalid characters at line 1",
            ),
        ] {
            assert!(whole.contains(from), "{from}");
            let error = Context::read(&whole.replacen(from, to, 1)).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn an_optional_value_may_be_null_and_a_byte_order_mark_is_ignored() {
        let whole = serde_json::to_string(&whole()).unwrap();
        let started = r#""started_at":"2026-11-20T10:00:00Z""#;
        let text = whole.replacen(started, r#""started_at":null"#, 1);
        let context = Context::read(&format!("\u{feff}{text}")).unwrap();
        assert_eq!(context.scans["a"].jobs[0].started_at, None);
    }

    #[test]
    fn a_text_that_is_not_a_context_is_refused() {
        for text in ["", "[]", "{}", "1", "null", "{\"project\": {}}", "{} {}"] {
            assert!(Context::read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(Context::read(&format!("{{\"job\": {deep}")).is_err());
    }
}
