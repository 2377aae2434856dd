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

/// Variables that a script is likely to have, in addition to those that its scan sets.
const VARIABLES: [&str; 14] = [
    "CI",
    "GOPATH",
    "HOME",
    "HOSTNAME",
    "JAVA_HOME",
    "LANG",
    "LOGNAME",
    "OLDPWD",
    "PATH",
    "PWD",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
];

/// The prefixes of further variables. Scripts of other services have the last two.
const PREFIXES: [&str; 4] = ["SERVICE_", "LC_", "GITHUB_", "RUNNER_"];

impl Reader<'_> {
    /// Warns about a variable or template in a path of an artifact.
    pub(super) fn literal_path(&mut self, node: &Node, path: &str) {
        let is_variable =
            |name: &str| self.is_variable(name) || !name.contains(|c: char| c.is_ascii_lowercase());
        let found = expansion(path, 0..path.len(), true, is_variable);
        let hint = "let the script write to a path that never changes, and name that";
        self.not_expanded(node, path, "paths", found, hint);
    }

    /// Warns about a variable or template in a label, whatever its name: labels have no `$`.
    pub(super) fn literal_label(&mut self, node: &Node, label: &str) {
        let found = expansion(label, 0..label.len(), true, |_| true);
        self.not_expanded(
            node,
            label,
            "runs_on",
            found,
            "write the label of the runner out",
        );
    }

    /// Warns about a variable in a value of `env`. A command there may be a payload.
    pub(super) fn literal_variable(&mut self, node: &Node, text: &str, name: &str) {
        let found = template::texts(text)
            .find_map(|outside| expansion(text, outside, false, |name| self.is_variable(name)));
        let is_odd = text.contains(['"', '\n', '\\']) || text.contains("${{");
        let hint = if is_odd || text.len() > SHOWN_BYTES {
            "set it at the beginning of the script, with `export`".to_owned()
        } else {
            // A shell does not replace `~` between quotes.
            let script = format!(":{text}").replace(":~/", ":$HOME/");
            format!("set it in the script: `export {name}=\"{}\"`", &script[1..])
        };
        self.not_expanded(node, text, "env", found, &hint);
    }

    /// Warns about a template in the default of an input.
    pub(super) fn literal_default(&mut self, node: &Node, text: &str) {
        let found = text.find("${{").map(|at| at..at + 3);
        let hint = "leave the default out, and write `inputs.NAME != '' ? inputs.NAME : vars.NAME` where the input is read";
        self.not_expanded(node, text, "default", found, hint);
    }

    fn is_variable(&self, name: &str) -> bool {
        VARIABLES.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || self.shared_variables.contains(name)
            || self.variables.contains(name)
    }

    /// Warns about the place of the script in a command line, as other services have it.
    pub(super) fn placeholder(&mut self, node: &Node, text: &str) {
        let found = text.find("{0}").map(|at| at..at + 3);
        let hint = "leave it out: the path of the script is added at the end";
        self.not_expanded(node, text, "shell", found, hint);
    }

    fn not_expanded(
        &mut self,
        node: &Node,
        text: &str,
        key: &str,
        found: Option<Range<usize>>,
        hint: &str,
    ) {
        let Some(found) = found else { return };
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
            .filter(|line| line.trim_start().starts_with('/'))
        else {
            return;
        };
        let mut words = line.split_whitespace().peekable();
        while words
            .next_if(|word| base(word) == "env" || word.starts_with('-') || word.contains('='))
            .is_some()
        {}
        let Some(program) = words.next().map(base).filter(|word| !word.is_empty()) else {
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

/// A longer value is not repeated in a hint.
const SHOWN_BYTES: usize = 100;

/// Longer text is not searched for its end, so that the time grows only with the length of a file.
const LONGEST_EXPANSION: usize = 200;

/// The first part of `text` within a range that a template or a shell would replace: `${{ … }}`, `$NAME`, `${NAME}` and `~/`; with
/// `commands` also `$(…)` and a command between backquotes.
fn expansion(
    text: &str,
    within: Range<usize>,
    commands: bool,
    is_variable: impl Fn(&str) -> bool,
) -> Option<Range<usize>> {
    let part = text.get(within.clone())?;
    part.match_indices(['$', '`', '~']).find_map(|(at, _)| {
        let (before, rest) = (text.get(..within.start + at)?, part.get(at..)?);
        let rest = rest.get(..rest.floor_char_boundary(LONGEST_EXPANSION))?;
        let end = |closing: &str| rest.find(closing).map(|at| at + closing.len());
        let name = name_of(rest).filter(|name| is_variable(name));
        let length = if rest.starts_with('~') {
            let is_start = before.is_empty() || before.ends_with(':');
            (is_start && rest.starts_with("~/")).then_some(1)
        } else if !commands && (rest.starts_with('`') || rest.starts_with("$(")) {
            None
        } else if rest.starts_with('`') {
            let end = rest.get(1..)?.find('`').map(|at| at + 2);
            end.filter(|end| before.is_empty() && *end == text.trim_end().len())
        } else if before.ends_with(['\\', '$']) {
            None
        } else if rest.starts_with("${{") {
            end("}}")
        } else if rest.starts_with("${") {
            end("}").filter(|_| name.is_some())
        } else if rest.starts_with("$((") {
            end("))")
        } else if rest.starts_with("$(") {
            end(")")
        } else {
            name.map(|name| name.len() + 1)
        };
        length.map(|length| before.len()..before.len() + length)
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
