//! Compares the schema with the parser: they must have the same keys, and give the same result for every workflow file of the
//! repository, except for rules that a schema cannot check.

#[path = "../../tests/fixtures/cases.rs"]
mod cases;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jsonschema::Validator;

use super::*;
use crate::parse::object::keys;
use crate::report::Report;
use crate::yaml::{self, Content, Meaning, Node};
use crate::{Code, Severity, TemplatePolicy, parse};

/// Errors that a schema cannot find. A file with only these errors may pass the schema. The guide has the same list.
const WEAKER: &[(Code, &str)] = &[
    (Code::UnknownName, "a name that does not exist"),
    (
        Code::UnavailableName,
        "a name that does not exist at this place",
    ),
    (Code::UnknownScan, "a scan that the file does not have"),
    (
        Code::UnknownInput,
        "an input that the scan does not declare",
    ),
    (
        Code::UnknownStep,
        "a step that the scan does not have, or that runs later",
    ),
    (
        Code::UnknownArtifact,
        "an artifact that the scan does not declare",
    ),
    (Code::UnknownMember, "a member that a job does not have"),
    (Code::UnknownFunction, "a function that does not exist"),
    (
        Code::HyphenatedName,
        "`scans.foo-bar`, which is a subtraction",
    ),
    (Code::DynamicName, "a var or secret whose name is computed"),
    (Code::SecretInTrigger, "a secret in `on.expr`"),
    (Code::ReadsOnlyItself, "a scan that waits for itself alone"),
    (Code::OwnScan, "a scan that asks itself"),
    (
        Code::ExpressionSyntax,
        "an expression that is not valid CEL",
    ),
    (Code::ExpressionType, "operands that do not fit"),
    (
        Code::ConditionNotBoolean,
        "a condition that is neither true nor false",
    ),
    (
        Code::ExpressionTooLarge,
        "an expression that is too long or too deep",
    ),
    (
        Code::ExpressionTooCostly,
        "an expression that could take too long",
    ),
    (
        Code::InvalidPattern,
        "a pattern that is not a regular expression",
    ),
    (Code::UnclosedTemplate, "`${{` without its end"),
    (
        Code::CronNeverFires,
        "a schedule of dates that do not exist",
    ),
    (Code::DuplicateName, "two artifacts of one name"),
    (Code::InvalidPath, "a pattern of a path that cannot be read"),
    (Code::InvalidName, "a var whose name is not possible"),
    (Code::InvalidCron, "a range that runs backwards"),
    (Code::InvalidShell, "a quote that is not closed"),
    (Code::InvalidValue, "a timeout of more than four hours"),
];

#[test]
fn the_schema_knows_exactly_the_keys_the_parser_knows() {
    let schema = json_schema();
    for (place, known) in [
        ("", keys::WORKFLOW.as_slice()),
        ("/$defs/scan", &keys::SCAN),
        ("/$defs/on", &keys::ON),
        ("/$defs/on/properties/dispatch", &keys::DISPATCH),
        ("/$defs/input", &keys::INPUT),
        ("/$defs/artifact", &keys::ARTIFACT),
        ("/$defs/step", &keys::STEP),
        ("/$defs/retry", &keys::RETRY),
    ] {
        let properties = schema
            .pointer(&format!("{place}/properties"))
            .and_then(Value::as_object)
            .unwrap();
        let written: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(written, known.iter().copied().collect(), "{place}");
    }
}

#[test]
fn the_schema_of_a_repository_agrees_with_its_parser() {
    let schema = project_schema();
    for (place, known) in [
        ("", keys::PROJECT.as_slice()),
        ("/$defs/rule", &keys::RULE),
        ("/$defs/rule/properties/quiet", &keys::QUIET),
    ] {
        let properties = schema.pointer(&format!("{place}/properties")).unwrap();
        let written: BTreeSet<&str> = properties
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(written, known.iter().copied().collect(), "{place}");
    }
    // What a schema cannot know.
    let weaker = [
        Code::DuplicateName,
        Code::InvalidName,
        Code::InvalidValue,
        Code::UnknownMember,
        Code::UnavailableName,
        Code::UnclosedTemplate,
        Code::UnknownName,
        Code::DynamicName,
    ];
    let validator: Validator = jsonschema::draft202012::new(&schema).unwrap();
    for file in cases::files(&["project"]) {
        for (name, text, _) in cases::cases(&file) {
            let Some(tree) = tree(&text) else { continue };
            let (rules, found) = crate::notify::parse_project(&name, &text);
            let is_valid = validator.is_valid(&tree);
            match rules {
                Some(_) => assert!(is_valid, "{name}"),
                None => assert!(
                    !is_valid || found.iter().all(|one| weaker.contains(&one.code)),
                    "{name}"
                ),
            }
        }
    }
}

#[test]
fn every_reference_in_the_schema_leads_somewhere() {
    fn walk(schema: &Value, part: &Value) {
        if let Some(target) = part.get("$ref").and_then(Value::as_str) {
            assert!(
                schema.pointer(target.trim_start_matches('#')).is_some(),
                "{target}"
            );
        }
        let children: Vec<&Value> = match part {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(|child| walk(schema, child));
    }
    for schema in [json_schema(), project_schema()] {
        walk(&schema, &schema);
    }
}

#[test]
fn every_key_is_described() {
    fn walk(part: &Value, place: &str) {
        let properties = part.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            let place = format!("{place}/{key}");
            let is_told = property.get("description").is_some();
            // The definition has the description.
            let is_defined = property.get("$ref").is_some();
            assert!(is_told || is_defined, "{place}");
            walk(property, &place);
        }
    }
    for schema in [json_schema(), project_schema()] {
        walk(&schema, "");
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            assert!(definition.get("description").is_some(), "{name}");
            walk(definition, name);
        }
    }
}

/// A workflow file, or a block of a page that shows a workflow file.
struct Sample {
    place: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below a folder whose name has this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_str().is_some_and(|path| path.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The workflow files that a page shows: fenced as YAML, or written to a file by its commands.
fn shown(page: &Path) -> Vec<Sample> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut samples = Vec::new();
    let mut ending: Option<&str> = None;
    let mut sample = String::new();
    for (at, line) in (1..).zip(text.lines()) {
        match ending {
            None if line == "```yaml" => ending = Some("```"),
            None if line.ends_with("<<'YAML'") => ending = Some("YAML"),
            None => {}
            Some(end) if line == end => {
                ending = None;
                let text = std::mem::take(&mut sample);
                if text.contains("scans:") {
                    let place = format!("{}, before line {at}", page.display());
                    samples.push(Sample { place, text });
                }
            }
            Some(_) => {
                sample.push_str(line);
                sample.push('\n');
            }
        }
    }
    samples
}

fn samples() -> Vec<Sample> {
    let root = root();
    let mut samples: Vec<Sample> = files(&root.join("examples"), ".yaml")
        .into_iter()
        .map(|path| Sample {
            place: path.display().to_string(),
            text: String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
        })
        .collect();
    for file in cases::files(&["invalid", "valid"]) {
        let cases = cases::cases(&file).into_iter();
        samples.extend(cases.map(|(place, text, _)| Sample { place, text }));
    }
    let pages = files(&root.join("docs"), ".md");
    let pages = pages
        .into_iter()
        .chain(files(&root.join("examples"), ".md"));
    for page in pages.chain([root.join("README.md")]) {
        samples.extend(shown(&page));
    }
    samples
}

/// The file as a JSON tree, for the schema.
fn tree(text: &str) -> Option<Value> {
    let mut report = Report::new("sample.yaml", text);
    let root = yaml::build(text, &mut report)?;
    (!report.has_errors()).then(|| value(&root))
}

fn value(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(scalar) => match scalar.meaning() {
            Meaning::Null => Value::Null,
            Meaning::Bool(value) => value.into(),
            Meaning::Number => serde_json::from_str(&scalar.text).unwrap_or(json!(0.5)),
            Meaning::Text => scalar.text.as_str().into(),
        },
        Content::List(items) => items.iter().map(|item| value(item)).collect(),
        Content::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.to_string(), value(&entry.value)))
            .collect(),
        Content::Invalid => Value::Null,
    }
}

/// The codes of the errors that the parser finds.
fn errors(text: &str) -> BTreeSet<&'static str> {
    let Err(diagnostics) = parse("sample.yaml", text, TemplatePolicy::Warn) else {
        return BTreeSet::new();
    };
    let errors = diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.code.name()).collect()
}

#[test]
fn parser_and_schema_agree_on_every_file_but_for_what_a_schema_cannot_know() {
    let schema = json_schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator: Validator = jsonschema::draft202012::new(&schema).unwrap();
    let weaker: BTreeSet<&str> = WEAKER.iter().map(|(code, _)| code.name()).collect();
    let (mut valid, mut compared, mut passed) = (0, 0, BTreeSet::new());
    let mut wrong = Vec::new();
    for Sample { place, text } in samples() {
        // An editor's YAML parser itself refuses invalid YAML.
        let Some(tree) = tree(&text) else {
            continue;
        };
        compared += 1;
        let errors = errors(&text);
        let refused: Vec<String> = validator
            .iter_errors(&tree)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        if errors.is_empty() {
            valid += 1;
            if !refused.is_empty() {
                wrong.push(format!(
                    "{place} is valid, but the schema reports {refused:?}"
                ));
            }
        } else if refused.is_empty() {
            let unexpected: Vec<_> = errors.difference(&weaker).collect();
            if !unexpected.is_empty() {
                wrong.push(format!("{place} passes the schema, but has {unexpected:?}"));
            }
            passed.extend(errors);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stale: Vec<_> = weaker.difference(&passed).collect();
    assert!(
        stale.is_empty(),
        "no file shows that the schema is weaker at {stale:?}"
    );
    assert!(valid > 60 && compared > 200, "{valid} valid of {compared}");
}

#[test]
fn the_guide_lists_where_the_schema_is_weaker() {
    let guide = std::fs::read_to_string(root().join("docs/writing-workflows.md")).unwrap();
    for (code, why) in WEAKER {
        let line = format!("| `{}` | {why} |", code.name());
        assert!(guide.contains(&line), "{line}");
    }
}
