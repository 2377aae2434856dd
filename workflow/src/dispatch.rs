//! Dispatch inputs: the inputs that a scan declares, and whether given values fit. All problems are reported together.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::limits::{INPUT_CHARS, INPUTS, NUMBER_DIGITS, SHOWN_CHARS};
use crate::number::Number;
use crate::suggestion::closest;

/// The content of `on.dispatch`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// The inputs in file order.
    pub inputs: Vec<Input>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its name: `inputs.KEY`.
    pub key: String,
    /// A text for people.
    pub description: Option<String>,
    pub kind: InputKind,
    /// The allowed values of a `choice`, in file order; empty for other types.
    pub options: Vec<String>,
    /// Whether a dispatch must give a value. The default does not count as given.
    pub required: bool,
    /// The value if no value is given. It has the input's type.
    pub default: InputValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    #[serde(rename = "string")]
    Text,
    Bool,
    Number,
    /// `choice`: one of the declared options.
    Choice,
}

/// The value of an input; a JSON string, number or boolean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string, a boolean or a number of at most 15 digits"
)]
pub enum InputValue {
    Bool(bool),
    Number(Number),
    /// The value of a `string` or `choice`.
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("input `{input}`: {problem}")]
pub struct InputError {
    /// The input's name, shortened if it is very long.
    pub input: String,
    #[source]
    pub problem: InputProblem,
}

impl InputError {
    /// The name that the caller probably meant, for a caller that may read the names.
    pub fn take_suggestion(&mut self) -> Option<String> {
        match &mut self.problem {
            InputProblem::Undeclared { did_you_mean } => did_you_mean.take(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InputProblem {
    #[error("a value is required")]
    Missing,
    #[error("the scan declares no such input{}", suggestion(did_you_mean.as_deref()))]
    Undeclared {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        did_you_mean: Option<String>,
    },
    #[error("expected {expected}, found {found}")]
    WrongType { expected: InputKind, found: String },
    #[error("expected one of {}, found {found}", shown_options(options))]
    NoOption { options: Vec<String>, found: String },
    #[error(
        "the value has {chars} characters; at most {INPUT_CHARS} are allowed, larger data can be uploaded and referred to"
    )]
    TooLong { chars: usize },
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Bool => f.write_str("`true` or `false`"),
            Self::Number => write!(
                f,
                "a number of at most {NUMBER_DIGITS} digits such as `3` or `-0.5`"
            ),
            Self::Choice => f.write_str("one of the options"),
        }
    }
}

impl fmt::Display for InputValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl InputKind {
    pub(crate) const ALL: &[Self] = &[Self::Text, Self::Bool, Self::Number, Self::Choice];

    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::Choice => "choice",
        }
    }

    /// The value of an input without a declared default. `options` are the options of a `choice`.
    pub fn default_value(self, options: &[String]) -> InputValue {
        match self {
            Self::Text => InputValue::Text(String::new()),
            Self::Bool => InputValue::Bool(false),
            Self::Number => InputValue::Number(Number::ZERO),
            Self::Choice => InputValue::Text(options.first().cloned().unwrap_or_default()),
        }
    }
}

impl Dispatch {
    /// The values for a job that was not dispatched.
    pub fn defaults(&self) -> BTreeMap<String, InputValue> {
        self.inputs
            .iter()
            .map(|input| (input.key.clone(), input.default.clone()))
            .collect()
    }

    /// Checks the values of a dispatch. The result includes the defaults. `null` counts as not given, but an empty string counts
    /// as given. Booleans and numbers may be given as strings.
    ///
    /// # Errors
    /// Every problem in the order of the declaration, then undeclared inputs by name, up to the number that can be declared.
    pub fn accept(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, InputValue>, Vec<InputError>> {
        let mut errors = Vec::new();
        let mut values = self.defaults();
        for input in &self.inputs {
            let value = given.get(&input.key).unwrap_or(&Value::Null);
            match input.accept(value) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    values.insert(input.key.clone(), value);
                }
                Err(problem) => errors.push(InputError {
                    input: input.key.clone(),
                    problem,
                }),
            }
        }
        let declared = || self.inputs.iter().map(|input| input.key.as_str());
        let undeclared = given
            .keys()
            .filter(|key| !declared().any(|known| known == key.as_str()));
        // A request can have millions of names, and each suggestion takes time.
        for key in undeclared.take(INPUTS) {
            errors.push(InputError {
                input: key.chars().take(SHOWN_CHARS).collect(),
                problem: InputProblem::Undeclared {
                    did_you_mean: closest(key, declared()).map(str::to_owned),
                },
            });
        }
        if errors.is_empty() {
            Ok(values)
        } else {
            Err(errors)
        }
    }
}

impl Input {
    fn accept(&self, value: &Value) -> Result<Option<InputValue>, InputProblem> {
        match (self.kind, value) {
            (_, Value::Null) if self.required => Err(InputProblem::Missing),
            (_, Value::Null) => Ok(None),
            (InputKind::Bool, Value::Bool(value)) => Ok(Some(InputValue::Bool(*value))),
            (InputKind::Bool, Value::String(text)) if text == "true" => {
                Ok(Some(InputValue::Bool(true)))
            }
            (InputKind::Bool, Value::String(text)) if text == "false" => {
                Ok(Some(InputValue::Bool(false)))
            }
            (InputKind::Text, Value::String(text)) => match text.chars().count() {
                chars if chars > INPUT_CHARS => Err(InputProblem::TooLong { chars }),
                _ => Ok(Some(InputValue::Text(text.clone()))),
            },
            (InputKind::Number, Value::Number(number)) => match Number::try_from(number) {
                Ok(number) => Ok(Some(InputValue::Number(number))),
                Err(_) => Err(self.wrong_type(value)),
            },
            (InputKind::Number, Value::String(text)) => match text.parse() {
                Ok(number) => Ok(Some(InputValue::Number(number))),
                Err(_) => Err(self.wrong_type(value)),
            },
            (InputKind::Choice, Value::String(text)) if self.options.contains(text) => {
                Ok(Some(InputValue::Text(text.clone())))
            }
            (InputKind::Choice, _) => Err(InputProblem::NoOption {
                options: self.options.clone(),
                found: describe(value),
            }),
            (InputKind::Text | InputKind::Bool | InputKind::Number, _) => {
                Err(self.wrong_type(value))
            }
        }
    }

    fn wrong_type(&self, value: &Value) -> InputProblem {
        InputProblem::WrongType {
            expected: self.kind,
            found: describe(value),
        }
    }
}

/// The first options, as a list in words.
fn shown_options(options: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = options
        .iter()
        .take(SHOWN)
        .map(|option| format!("`{option}`"))
        .collect();
    let more = options.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &more
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            format!("the string {:?}", text.chars().take(40).collect::<String>())
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn suggestion(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared() -> Dispatch {
        let input = |key: &str, kind: InputKind, required: bool, default: InputValue| Input {
            key: key.to_owned(),
            description: None,
            kind,
            options: Vec::new(),
            required,
            default,
        };
        Dispatch {
            inputs: vec![
                input(
                    "target",
                    InputKind::Text,
                    true,
                    InputValue::Text("unused".to_owned()),
                ),
                input(
                    "depth",
                    InputKind::Text,
                    false,
                    InputValue::Text("3".to_owned()),
                ),
                input("force", InputKind::Bool, false, InputValue::Bool(false)),
            ],
        }
    }

    fn given(values: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(values).unwrap()
    }

    #[test]
    fn the_result_is_complete_with_defaults() {
        let values = declared()
            .accept(&given(
                json!({"target": "x", "force": "true", "depth": null}),
            ))
            .unwrap();
        assert_eq!(
            serde_json::to_value(values).unwrap(),
            json!({"target": "x", "depth": "3", "force": true})
        );
    }

    #[test]
    fn an_empty_string_counts_as_given_and_null_does_not() {
        assert!(declared().accept(&given(json!({"target": ""}))).is_ok());
        for missing in [json!({}), json!({"target": null})] {
            let errors = declared().accept(&given(missing)).unwrap_err();
            assert_eq!(
                errors,
                [InputError {
                    input: "target".to_owned(),
                    problem: InputProblem::Missing
                }]
            );
        }
    }

    /// A scan with one number and one choice.
    fn typed() -> Dispatch {
        let input = |key: &str, kind: InputKind, options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            Input {
                key: key.to_owned(),
                description: None,
                kind,
                required: false,
                default: kind.default_value(&options),
                options,
            }
        };
        Dispatch {
            inputs: vec![
                input("depth", InputKind::Number, &[]),
                input("size", InputKind::Choice, &["small", "large"]),
            ],
        }
    }

    #[test]
    fn numbers_and_choices_have_defaults_and_are_given_as_they_are_or_as_text() {
        for (values, expected) in [
            (json!({}), json!({"depth": 0, "size": "small"})),
            (
                json!({"depth": null, "size": null}),
                json!({"depth": 0, "size": "small"}),
            ),
            (
                json!({"depth": 3.0, "size": "large"}),
                json!({"depth": 3, "size": "large"}),
            ),
            (
                json!({"depth": "-0.50"}),
                json!({"depth": -0.5, "size": "small"}),
            ),
        ] {
            let accepted = typed().accept(&given(values)).unwrap();
            assert_eq!(serde_json::to_value(accepted).unwrap(), expected);
        }
    }

    #[test]
    fn a_wrong_number_or_option_is_reported() {
        let reported = |values: Value| -> Vec<String> {
            let errors = typed().accept(&given(values)).unwrap_err();
            errors.iter().map(ToString::to_string).collect()
        };
        let number =
            "input `depth`: expected a number of at most 15 digits such as `3` or `-0.5`, found";
        for (value, found) in [
            (json!(""), "the string \"\""),
            (json!("3 "), "the string \"3 \""),
            (json!(true), "the boolean true"),
            (json!(1e300), "the number 1e+300"),
        ] {
            assert_eq!(
                reported(json!({"depth": value})),
                [format!("{number} {found}")]
            );
        }
        for (value, found) in [(json!(""), "the string \"\""), (json!(1), "the number 1")] {
            let expected = format!("input `size`: expected one of `small`, `large`, found {found}");
            assert_eq!(reported(json!({"size": value})), [expected]);
        }
    }

    #[test]
    fn a_long_list_of_options_is_cut_in_words() {
        let options: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let shown = shown_options(&options);
        assert!(
            shown.starts_with("`0`, `1`, ") && shown.ends_with("`19` and 80 more"),
            "{shown}"
        );
    }

    #[test]
    fn a_flood_of_undeclared_inputs_is_cut() {
        let flood = (0..5_000).map(|number| (format!("n{number}"), json!("x")));
        let errors = declared().accept(&flood.collect()).unwrap_err();
        assert_eq!(errors.len(), INPUTS + 1, "the limit, and the missing input");
    }

    #[test]
    fn all_problems_are_reported_together() {
        let errors = declared()
            .accept(&given(json!({"depth": 3, "force": "yes", "forse": true})))
            .unwrap_err();
        let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            [
                "input `target`: a value is required",
                "input `depth`: expected a string, found the number 3",
                "input `force`: expected `true` or `false`, found the string \"yes\"",
                "input `forse`: the scan declares no such input, did you mean `force`?",
            ]
        );
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        let fits = "ä".repeat(INPUT_CHARS);
        assert!(declared().accept(&given(json!({"target": fits}))).is_ok());
        let errors = declared()
            .accept(&given(json!({"target": format!("{fits}ä")})))
            .unwrap_err();
        assert_eq!(
            errors[0].problem,
            InputProblem::TooLong {
                chars: INPUT_CHARS + 1
            }
        );
    }
}
