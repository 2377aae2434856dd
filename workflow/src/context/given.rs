//! A context that a person wrote. The records of jobs and the messages to runners may have keys that are not known yet;
//! a key that a person has mistyped would be left out without a word, and the answer would be another one.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::Context;
use crate::suggestion::did_you_mean;

impl Context {
    /// Reads a context from JSON, with more care than its form asks for: it has no unknown keys, and none twice.
    ///
    /// # Errors
    /// What is wrong with the text, with its line and column.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        CONTEXT.deserialize(&mut json)?;
        json.end()?;
        serde_json::from_str(text)
    }
}

/// Which keys stand where.
enum Shape {
    /// A value without keys of ours.
    Value,
    /// An object with these keys, and what it is called.
    Object(&'static str, &'static [(&'static str, Shape)]),
    /// An object whose keys are names of a person's choice.
    Named(&'static Shape),
    /// A list.
    List(&'static Shape),
}

const CONTEXT: Shape = Shape::Object(
    "a context",
    &[
        (
            "job",
            Shape::Object("a job", &[("id", Shape::Value), ("name", Shape::Value)]),
        ),
        ("project", Shape::Value),
        ("workflow", Shape::Value),
        ("revision", Shape::Value),
        ("vars", Shape::Named(&Shape::Value)),
        ("inputs", Shape::Named(&Shape::Value)),
        ("scans", Shape::Named(&SCAN)),
        ("ok", Shape::Value),
    ],
);

const SCAN: Shape = Shape::Object(
    "a scan",
    &[
        ("size", Shape::Value),
        ("jobs", Shape::List(&JOB)),
        ("available", Shape::Value),
        ("successes", Shape::Value),
        (
            "newest_successes",
            Shape::List(&Shape::Named(&Shape::Value)),
        ),
        ("newest_success_ids", Shape::List(&Shape::Value)),
    ],
);

const JOB: Shape = Shape::Object(
    "a job of a scan",
    &[
        ("id", Shape::Value),
        ("state", Shape::Value),
        ("trigger", Shape::Value),
        ("revision", Shape::Value),
        ("created_at", Shape::Value),
        ("started_at", Shape::Value),
        ("finished_at", Shape::Value),
        (
            "artifacts",
            Shape::Named(&Shape::Object(
                "an artifact",
                &[("checksum", Shape::Value), ("size", Shape::Value)],
            )),
        ),
    ],
);

impl Shape {
    /// What stands behind a key.
    fn member<E: serde::de::Error>(&self, key: &str) -> Result<&Self, E> {
        match self {
            Self::Value | Self::List(_) => Ok(&Self::Value),
            Self::Named(shape) => Ok(shape),
            Self::Object(what, members) => {
                let known = members.iter().find(|(name, _)| *name == key);
                known.map(|(_, shape)| shape).ok_or_else(|| {
                    let names = members.iter().map(|(name, _)| *name);
                    let question = did_you_mean(key, names)
                        .map_or_else(String::new, |question| format!(" ({question})"));
                    E::custom(format!("{what} has no `{key}`{question}"))
                })
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for &Shape {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Goes over the keys only: whether a value is of the right type is found when the context is made of it.
impl<'de> Visitor<'de> for &Shape {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a context")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let shape = self.member(&key)?;
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            map.next_value_seed(shape)?;
            seen.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let element = match self {
            Shape::List(shape) => *shape,
            Shape::Value | Shape::Object(..) | Shape::Named(_) => &Shape::Value,
        };
        while list.next_element_seed(element)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ArtifactSummary, JobIdentity, JobSummary, ScanHistory};
    use crate::dispatch::InputValue;
    use std::collections::BTreeMap;

    /// With every key that the records of jobs have.
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
        };
        let scan = ScanHistory {
            size: 1,
            jobs: vec![job],
            available: true,
            successes: 1,
            newest_successes: vec![BTreeMap::from([("out".to_owned(), "c".to_owned())])],
            newest_success_ids: vec!["j".to_owned()],
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
            inputs: BTreeMap::from([("fast".to_owned(), InputValue::Bool(true))]),
            scans: BTreeMap::from([("a".to_owned(), scan)]),
            ok: true,
        }
    }

    #[test]
    fn what_a_job_keeps_is_read() {
        let text = serde_json::to_string(&whole()).unwrap();
        assert_eq!(Context::read(&text).unwrap(), whole());
    }

    #[test]
    fn a_key_that_means_nothing_or_comes_twice_is_told_with_its_place() {
        let whole = serde_json::to_string(&whole()).unwrap();
        for (from, to, expected) in [
            (
                r#""ok":"#,
                r#""scan":{},"ok":"#,
                "a context has no `scan` (did you mean `scans`?)",
            ),
            (r#""ok":"#, r#""zzz":1,"ok":"#, "a context has no `zzz`"),
            (
                r#""available""#,
                r#""availble""#,
                "a scan has no `availble` (did you mean `available`?)",
            ),
            (
                r#""trigger""#,
                r#""triger""#,
                "a job of a scan has no `triger` (did you mean `trigger`?)",
            ),
            (r#""checksum""#, r#""sum""#, "an artifact has no `sum`"),
            (
                r#""name""#,
                r#""nme""#,
                "a job has no `nme` (did you mean `name`?)",
            ),
            (
                r#""ok":"#,
                r#""ok":true,"ok":"#,
                "the key `ok` is there twice",
            ),
            (r#""A":"#, r#""A":"2","A":"#, "the key `A` is there twice"),
            (
                r#""fast":"#,
                r#""fast":1,"fast":"#,
                "the key `fast` is there twice",
            ),
        ] {
            assert!(whole.contains(from), "{from}");
            let text = whole.replacen(from, to, 1);
            let error = Context::read(&text).unwrap_err().to_string();
            let (message, place) = error.split_once(" at line 1 column ").unwrap();
            assert_eq!(message, expected, "{text}");
            assert!(place.parse::<usize>().unwrap() > 1, "{error}");
        }
    }

    #[test]
    fn what_is_no_context_is_refused() {
        for text in ["", "[]", "{}", "1", "null", "{\"project\": {}}", "{} {}"] {
            assert!(Context::read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(Context::read(&format!("{{\"job\": {deep}")).is_err());
    }
}
