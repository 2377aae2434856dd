//! The workflow files of a tip: their names and digests, and the parsed content of changed files.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::plan::{DesiredContent, DesiredFile, DesiredTip};
use model::{WorkflowId, WorkflowStatus};
use state::State;
use workflow::notify::{Rule, parse_project};
use workflow::{Code, Diagnostic, LinesOfFile, SETTINGS_FILE, TemplatePolicy};

use super::configured::SourceConfig;
use crate::git::{Content, File, Snapshot, Tip, Unreadable};

/// The workflow files of a tip, and the rules of notifications unless their file is invalid, which then counts as one of the
/// files. An active text is recognised by its digest and not parsed again.
pub(super) async fn desired(
    state: &State,
    config: &SourceConfig,
    tip: &Tip,
    snapshot: Snapshot,
) -> Result<(DesiredTip, Option<Vec<Rule>>), String> {
    let active: HashMap<WorkflowId, Active> = state.read(|world| {
        world
            .workflows_of(&config.name)
            .filter(|workflow| workflow.record.status == WorkflowStatus::Active)
            .map(|workflow| {
                let active = Active {
                    file: workflow.record.file.clone(),
                    sha256: workflow.revision.record.text.sha256.clone(),
                };
                (workflow.record.id, active)
            })
            .collect()
    });
    let commit = tip.commit.to_string();
    let config_of_task = config.clone();
    let parsed = tokio::task::spawn_blocking(move || {
        let names: Vec<String> = snapshot
            .files
            .iter()
            .map(|file| name_of(&config_of_task.folder, &file.path))
            .collect();
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &names {
            *uses.entry(name).or_default() += 1;
        }
        let mut files: Vec<DesiredFile> = snapshot
            .files
            .iter()
            .zip(&names)
            .map(|(file, name)| {
                let id = WorkflowId::derive(&config_of_task.name, name);
                let content = if uses.get(name.as_str()).copied() > Some(1) {
                    without_text(twice(&file.path))
                } else {
                    content(file, active.get(&id))
                };
                DesiredFile {
                    file: file.path.clone(),
                    name: name.clone(),
                    content,
                }
            })
            .collect();
        let rules = match rules(snapshot.settings) {
            Ok(rules) => Some(rules),
            Err(content) => {
                files.push(DesiredFile {
                    file: SETTINGS_FILE.to_owned(),
                    name: SETTINGS_FILE.to_owned(),
                    content,
                });
                None
            }
        };
        let tip = DesiredTip {
            commit,
            files,
            folder: snapshot.folder,
        };
        (tip, rules)
    });
    parsed
        .await
        .map_err(|error| format!("reading the workflow files ended unexpectedly: {error}"))
}

struct Active {
    file: String,
    sha256: String,
}

/// Path below the source's folder without extension.
fn name_of(folder: &str, path: &str) -> String {
    let folder = folder.trim_matches('/');
    let below = path
        .strip_prefix(folder)
        .and_then(|below| below.strip_prefix('/'));
    let below = below.unwrap_or(path);
    let name = below
        .strip_suffix(".yaml")
        .or_else(|| below.strip_suffix(".yml"));
    name.unwrap_or(below).to_owned()
}

/// The rules of the file at the top of the repository, or why it is invalid.
fn rules(settings: Option<Content>) -> Result<Vec<Rule>, DesiredContent> {
    let text = match settings {
        None => return Ok(Vec::new()),
        Some(Content::Text(text)) => text,
        Some(Content::Unreadable(why)) => {
            return Err(without_text(unreadable(SETTINGS_FILE, why)));
        }
    };
    let (rules, diagnostics) = parse_project(SETTINGS_FILE, &text);
    rules.ok_or_else(|| DesiredContent::Invalid {
        excerpt: LinesOfFile::around_error(&text, &diagnostics),
        diagnostics,
    })
}

fn content(file: &File, active: Option<&Active>) -> DesiredContent {
    let text: &Arc<str> = match &file.content {
        Content::Text(text) => text,
        Content::Unreadable(why) => {
            return without_text(unreadable(&file.path, *why));
        }
    };
    let sha256 = workflow::sha256(text.as_bytes());
    if active.is_some_and(|active| active.sha256 == sha256 && active.file == file.path) {
        return DesiredContent::Unchanged;
    }
    match workflow::parse(&file.path, text, TemplatePolicy::Warn) {
        Ok(parsed) => DesiredContent::Valid {
            text: text.clone(),
            sha256,
            definition: Arc::new(parsed.workflow),
            warnings: parsed.warnings,
        },
        Err(diagnostics) => DesiredContent::Invalid {
            excerpt: LinesOfFile::around_error(text, &diagnostics),
            diagnostics,
        },
    }
}

fn without_text(diagnostic: Diagnostic) -> DesiredContent {
    DesiredContent::Invalid {
        diagnostics: vec![diagnostic],
        excerpt: None,
    }
}

fn unreadable(path: &str, why: Unreadable) -> Diagnostic {
    match why {
        Unreadable::Symlink => Diagnostic::symbolic_link(path),
        Unreadable::TooLarge { .. } => Diagnostic::too_large(path),
        Unreadable::Misnamed => Diagnostic::not_utf8_name(path),
        Unreadable::NotUtf8(place) => Diagnostic::not_utf8_text(path, place),
        Unreadable::Missing => {
            Diagnostic::of_file(path, Code::UnreadableFile, why.to_string(), None)
        }
    }
}

fn twice(path: &str) -> Diagnostic {
    Diagnostic::of_file(
        path,
        Code::DuplicateName,
        "two files of this name differ only in their extension".to_owned(),
        Some("remove or rename one of them".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use workflow::NotUtf8;

    use super::*;

    const NOT_UTF8: NotUtf8 = NotUtf8 { line: 3, column: 7 };

    /// The same codes as `everscan validate` reports.
    #[test]
    fn an_unreadable_file_has_the_code_of_its_problem() {
        for (why, code) in [
            (Unreadable::Symlink, Code::UnreadableFile),
            (Unreadable::Misnamed, Code::UnreadableFile),
            (Unreadable::NotUtf8(NOT_UTF8), Code::UnreadableFile),
            (Unreadable::Missing, Code::UnreadableFile),
            (
                Unreadable::TooLarge { size: 2, limit: 1 },
                Code::FileTooLarge,
            ),
        ] {
            let found = unreadable("workflows/a.yaml", why);
            assert_eq!((found.code, &*found.file), (code, "workflows/a.yaml"));
        }
        let found = unreadable("workflows/a.yaml", Unreadable::NotUtf8(NOT_UTF8));
        assert_eq!((found.line, found.column), (3, 7));
    }

    #[test]
    fn names_are_paths_below_the_folder_without_extension() {
        for (folder, path, name) in [
            ("workflows", "workflows/a.yaml", "a"),
            ("workflows", "workflows/deep/b.yml", "deep/b"),
            ("workflows/", "workflows/c.d.yaml", "c.d"),
            ("", "top.yaml", "top"),
            (".", "top.yaml", "top"),
            (".", ".hidden/a.yaml", ".hidden/a"),
            ("work", "workflows/a.yaml", "workflows/a"),
        ] {
            assert_eq!(name_of(folder, path), name, "{folder} {path}");
        }
    }
}
