//! Reads a context that a person wrote. Records of jobs and messages to runners may have unknown keys. Here an unknown
//! key is an error: it is probably a typing error, and ignoring it would change the result.

mod shape;

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Context;
use crate::number::Number;
use shape::{CONTEXT, Shape};

impl Context {
    /// Reads a context from JSON. Unknown keys and repeated keys are errors. A byte order mark at the start is ignored,
    /// as in workflow files.
    ///
    /// # Errors
    /// What is wrong with the text, with its line and column.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut json = serde_json::Deserializer::from_str(text);
        let context = Place {
            path: Path::Top,
            shape: &CONTEXT,
        };
        context.deserialize(&mut json)?;
        json.end()?;
        serde_json::from_str(text)
    }
}

/// How a value is reached.
#[derive(Clone, Copy)]
enum Path<'p> {
    Top,
    Key(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_word = |key: &str| key.chars().all(|c| c.is_alphanumeric() || c == '_');
        match self {
            Self::Top => Ok(()),
            Self::Key(Self::Top, key) => f.write_str(key),
            Self::Key(owner, key) if is_word(key) => write!(f, "{owner}.{key}"),
            Self::Key(owner, key) => write!(f, "{owner}[{key:?}]"),
            Self::Item(owner, at) => write!(f, "{owner}[{at}]"),
        }
    }
}

/// A value that must have a shape. It is only checked.
struct Place<'p> {
    path: Path<'p>,
    shape: &'static Shape,
}

impl Place<'_> {
    /// Ok, or an error that names what was `found`.
    fn right<E: Error>(&self, is_right: bool, found: &str) -> Result<(), E> {
        if is_right {
            return Ok(());
        }
        let expected = self.shape.label();
        Err(E::custom(match self.path {
            Path::Top => format!("the context is {expected}, found {found}"),
            path => format!("`{path}` is {expected}, found {found}"),
        }))
    }

    /// Whether a number may stand here as the value of an input.
    fn is_input(&self, number: impl fmt::Display) -> bool {
        matches!(self.shape, Shape::Input) && number.to_string().parse::<Number>().is_ok()
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shape.label())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let shape = self.shape.present();
        let is_right = matches!(shape, Shape::Object(..) | Shape::Named(_));
        self.right(is_right, "an object")?;
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let shape = shape.member(&key).map_err(A::Error::custom)?;
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            map.next_value_seed(Place {
                path: Path::Key(&self.path, &key),
                shape,
            })?;
            seen.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Shape::List(shape) = self.shape.present() else {
            return self.right(false, "a list");
        };
        let mut at = 0;
        let item = |at| Place {
            path: Path::Item(&self.path, at),
            shape,
        };
        while list.next_element_seed(item(at))?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        let is_right = matches!(self.shape, Shape::Bool | Shape::Input);
        self.right(is_right, "a boolean")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        // Positive numbers come as unsigned.
        self.right(self.is_input(number), "a number below 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        let is_right = matches!(self.shape, Shape::Count) || self.is_input(number);
        self.right(is_right, "a number")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.right(self.is_input(number), "a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let is_right = match self.shape.present() {
            Shape::Text | Shape::Input => true,
            Shape::Time => text.parse::<DateTime<Utc>>().is_ok(),
            Shape::Bool | Shape::Count | Shape::Optional(_) => false,
            Shape::Object(..) | Shape::Named(_) | Shape::List(_) => false,
        };
        self.right(is_right, "a string")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.right(matches!(self.shape, Shape::Optional(_)), "null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{
        ArtifactSummary, JobIdentity, JobSummary, News, Processed, ScanHistory, StepSummary,
    };
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
            scans: BTreeMap::from([("a".to_owned(), scan)]),
            steps: BTreeMap::from([("first".to_owned(), step)]),
            ok: true,
        }
    }

    /// The error for a whole context in which a part was replaced, without its position.
    fn error_of(whole: &str, from: &str, to: &str) -> String {
        assert!(whole.contains(from), "{from}");
        let text = whole.replacen(from, to, 1);
        let error = Context::read(&text).unwrap_err().to_string();
        let (message, place) = error.split_once(" at line 1 column ").unwrap();
        assert!(place.parse::<usize>().unwrap() > 1, "{error}");
        message.to_owned()
    }

    #[test]
    fn what_a_job_keeps_is_read() {
        let text = serde_json::to_string(&whole()).unwrap();
        assert_eq!(Context::read(&text).unwrap(), whole());
    }

    #[test]
    fn an_unknown_or_repeated_key_is_reported_with_its_place() {
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
                r#""fast":true,"fast":"#,
                "the key `fast` is there twice",
            ),
        ] {
            assert_eq!(error_of(&whole, from, to), expected);
        }
    }

    #[test]
    fn a_value_of_another_type_is_reported_with_its_path() {
        let whole = serde_json::to_string(&whole()).unwrap();
        for (from, to, expected) in [
            (
                r#""fast":true"#,
                r#""a":"x","n":1e300"#,
                "`inputs.n` is a string, a boolean or a number of at most 15 digits, found a number",
            ),
            (
                r#""A":"1""#,
                r#""A":1"#,
                "`vars.A` is a string, found a number",
            ),
            (
                r#""project":"p""#,
                r#""project":{}"#,
                "`project` is a string, found an object",
            ),
            (
                r#""ok":true"#,
                r#""ok":null"#,
                "`ok` is a boolean, found null",
            ),
            (
                r#""successes":1"#,
                r#""successes":-1"#,
                "`scans.a.successes` is a whole number from 0, found a number below 0",
            ),
            (
                r#""state":"succeeded""#,
                r#""state":true"#,
                "`scans.a.jobs[0].state` is a string, found a boolean",
            ),
            (
                r#""started_at":"2026-11-20T10:00:00Z""#,
                r#""started_at":"today""#,
                "`scans.a.jobs[0].started_at` is a time such as `2026-11-20T10:00:00Z`, found a string",
            ),
            (
                r#"{"out":"c"}"#,
                r#"{"o.ut":[]}"#,
                "`scans.a.newest_successes[0][\"o.ut\"]` is a string, found a list",
            ),
            (
                r#"{"id":"j","name":"a"}"#,
                r#"["j","a"]"#,
                "`job` is an object, found a list",
            ),
        ] {
            assert_eq!(error_of(&whole, from, to), expected);
        }
        for (text, found) in [("[]", "a list"), ("1", "a number"), ("null", "null")] {
            let error = Context::read(text).unwrap_err().to_string();
            let expected = format!("the context is an object, found {found}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn what_may_be_left_out_may_be_null_and_a_byte_order_mark_is_nothing() {
        let whole = serde_json::to_string(&whole()).unwrap();
        let started = r#""started_at":"2026-11-20T10:00:00Z""#;
        let text = whole.replacen(started, r#""started_at":null"#, 1);
        let context = Context::read(&format!("\u{feff}{text}")).unwrap();
        assert_eq!(context.scans["a"].jobs[0].started_at, None);
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
