//! The shell commands that undo a repair, in order.

use std::path::Path;

use state::fsck::{Moved, Repair};

/// The commands that undo the repairs, the last repair first. The next start rebuilds the live index.
pub(crate) fn commands(root: &Path, repairs: &[Repair]) -> Vec<String> {
    let mut commands: Vec<String> = repairs
        .iter()
        .rev()
        .filter_map(|repair| command(root, repair))
        .collect();
    if !commands.is_empty() {
        let index = quoted(&root.join("index").to_string_lossy());
        commands.push(format!("rm -f {index}/live-*"));
    }
    commands
}

fn command(root: &Path, repair: &Repair) -> Option<String> {
    let path = |path: &str| quoted(&root.join(path).to_string_lossy());
    match repair {
        Repair::Moved(Moved { from, to }) if !is_of_the_store(from) => Some(format!(
            "mkdir -p {} && mv {} {}",
            path(folder(from)),
            path(to),
            path(from)
        )),
        Repair::Closed { path: closed, mode } => Some(format!("chmod {mode} {}", path(closed))),
        // The next command moves the former file back.
        Repair::Recounted { path: new } => Some(format!("rm -f {}", path(new))),
        // The store rebuilds derived files, and a lost journal cannot be restored.
        Repair::Moved(_) | Repair::Lost(_) => None,
    }
}

/// Whether the next start would rebuild, refuse or remove the file. Then moving it back would not help.
fn is_of_the_store(path: &str) -> bool {
    ["index/", "journal/", "tmp/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_repair_is_undone_first_and_words_are_quoted() {
        let moved = |path: &str| {
            Repair::Moved(Moved {
                from: path.to_owned(),
                to: format!("quarantine/{path}"),
            })
        };
        let repairs = [
            Repair::Closed {
                path: "a".to_owned(),
                mode: "0644".to_owned(),
            },
            moved("b/it's.json"),
            moved("index/live-1"),
            moved("tmp/object-1"),
            Repair::Recounted {
                path: "c".to_owned(),
            },
        ];
        assert_eq!(
            commands(Path::new("/s"), &repairs),
            [
                "rm -f '/s/c'",
                "mkdir -p '/s/b' && mv '/s/quarantine/b/it'\\''s.json' '/s/b/it'\\''s.json'",
                "chmod 0644 '/s/a'",
                "rm -f '/s/index'/live-*",
            ]
        );
        assert!(commands(Path::new("/s"), &[]).is_empty());
    }
}
