//! Warnings about text that is written as if something replaced a part of it, where nothing does.

use std::ops::Range;

use super::Reader;
use crate::diagnostic::Code;
use crate::template;
use crate::yaml::Node;

/// The words that the shell of a step without `shell` may be started with.
const DEFAULT_SHELL: [&str; 8] = [
    "bash",
    "sh",
    "-e",
    "-eo",
    "-o",
    "pipefail",
    "--noprofile",
    "--norc",
];

impl Reader<'_> {
    /// Warns about a variable or template in an entry of `paths` or `runs_on`.
    pub(super) fn literal(&mut self, node: &Node, text: &str, key: &str, hint: &str) {
        if let Some(found) = expansions(text).next() {
            self.not_expanded(node, text, key, found, hint);
        }
    }

    /// Warns about a variable in a value of `env`. A name with small letters may belong to another language.
    pub(super) fn literal_variable(&mut self, node: &Node, text: &str, name: &str) {
        let is_small = |it: &&str| it.contains(|c: char| c.is_ascii_lowercase());
        let found = template::texts(text).find_map(|outside| {
            let part = text.get(outside.clone())?;
            let mut found =
                expansions(part).map(|it| it.start + outside.start..it.end + outside.start);
            found.find(|it| {
                let variable = text.get(it.clone()).unwrap_or("");
                variable.starts_with("$(") || name_of(variable).filter(|it| !is_small(it)).is_some()
            })
        });
        let Some(found) = found else { return };
        let hint = if text.contains(['"', '\n', '\\']) || text.contains("${{") {
            "set it at the beginning of the script, with `export`".to_owned()
        } else {
            format!("set it in the script: `export {name}=\"{text}\"`")
        };
        self.not_expanded(node, text, "env", found, &hint);
    }

    /// Warns about the place of the script in a command line, as other services have it.
    pub(super) fn placeholder(&mut self, node: &Node, text: &str) {
        if let Some(at) = text.find("{0}") {
            let hint = "leave it out: the path of the script is added at the end";
            self.not_expanded(node, text, "shell", at..at + 3, hint);
        }
    }

    fn not_expanded(
        &mut self,
        node: &Node,
        text: &str,
        key: &str,
        found: Range<usize>,
        hint: &str,
    ) {
        let shown = text.get(found.clone()).unwrap_or("…");
        let message =
            format!("nothing replaces `{shown}` in `{key}`: it is taken as it is written");
        let span = self.report.places(node).locate(found);
        self.report
            .warning(span, Code::NotExpanded, message)
            .hint(hint);
    }

    /// Warns if the first line of a script names a program that does not run it.
    pub(super) fn shebang(&mut self, node: &Node, script: &str, shell: Option<&[String]>) {
        let Some(line) = script
            .strip_prefix("#!")
            .and_then(|rest| rest.lines().next())
        else {
            return;
        };
        let mut words = line.split_whitespace().peekable();
        while words
            .next_if(|word| base(word) == "env" || word.starts_with('-') || word.contains('='))
            .is_some()
        {}
        let Some(program) = words.next().map(base) else {
            return;
        };
        let words: Vec<&str> = std::iter::once(program).chain(words).collect();
        let used: Vec<&str> = match shell {
            Some(shell) => shell.iter().flat_map(|word| [base(word), word]).collect(),
            None => DEFAULT_SHELL.to_vec(),
        };
        // `env FILE` and `sh -c '"$0"' FILE` may execute the script itself.
        let is_executed = shell.is_some_and(|shell| shell.len() == 1 && used.contains(&"env"))
            || used.contains(&"-c");
        let is_used = |word: &&str| used.iter().any(|it| version_less(it) == version_less(word));
        if is_executed || words.iter().all(is_used) {
            return;
        }
        let program = used.first().copied().unwrap_or_default();
        let message = format!("the line `#!{line}` has no effect: `{program}` runs the script");
        let span = self.report.places(node).locate(0..line.len() + 2);
        self.report
            .warning(span, Code::IgnoredShebang, message)
            .hint(format!("write `shell: {}`", words.join(" ")));
    }
}

/// `python3.12` is `python`.
fn version_less(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Longer text is not searched for its end, so that the time grows only with the length of a file.
const LONGEST_EXPANSION: usize = 200;

/// What a shell or a template would replace: `$NAME`, `${…}`, `$(…)` and `${{ … }}`.
fn expansions(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices('$').filter_map(|(start, _)| {
        let rest = text.get(start..)?;
        let rest = rest.get(..rest.floor_char_boundary(LONGEST_EXPANSION))?;
        let end = |closing: &str| rest.find(closing).map(|at| at + closing.len());
        let length = if text.get(..start)?.ends_with('\\') {
            None
        } else if rest.starts_with("${{") {
            end("}}")
        } else if rest.starts_with("${") {
            end("}").filter(|_| name_of(rest).is_some())
        } else if rest.starts_with("$(") {
            end(")")
        } else {
            name_of(rest).map(|name| name.len() + 1)
        };
        length.map(|length| start..start + length)
    })
}

/// The name in `$NAME` and `${NAME…}`.
fn name_of(variable: &str) -> Option<&str> {
    let rest = variable.strip_prefix('$')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = rest.get(..end.unwrap_or(rest.len()))?;
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}
