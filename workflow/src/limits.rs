//! Every bound of the language, with its reason.

use chrono::TimeDelta;

/// Largest workflow file: a thousand times a large hand-written one, and parsed within a second.
pub const FILE_BYTES: usize = 1024 * 1024;

/// Deepest nesting of YAML: the format needs seven levels, and each costs stack while it is walked.
pub const YAML_DEPTH: usize = 64;

/// Keys and values of one file: those of a file that is full of the smallest ordinary scans, twenty-two thousand of eleven
/// each, so that only a file's size bounds their number. Reading it takes a second and 50 MiB without optimisation; a list
/// of single letters could have twice as many.
pub const YAML_NODES: usize = 250_000;

/// Nodes that aliases may add in one file, so that a few lines cannot expand to gigabytes.
pub const ALIAS_NODES: usize = 20_000;

/// Bytes of text that aliases may add in one file, for the same reason.
pub const ALIAS_BYTES: usize = FILE_BYTES;

/// Problems reported of one file; nobody reads more, and a report must stay a small record.
pub const DIAGNOSTICS: usize = 200;

/// Characters of a name from the file that a message repeats.
pub const SHOWN_CHARS: usize = 80;

/// Bytes of a line that are looked at for an excerpt: all of one with the longest expression, and a small part of a file
/// on one line, for each of whose problems they are looked at.
pub const EXCERPT_BYTES: usize = 4_096;

/// Names before and behind an unknown one, in the order of the alphabet, that are compared for a suggestion: all of a
/// workflow written by hand, and few enough for a file in which each of thousands of names is wrong.
pub const SUGGESTED_NAMES: usize = 250;

/// Longest expression: beyond this it is a program that belongs into a step.
pub const EXPRESSION_BYTES: usize = 1_024;

/// Bytes of all expressions of one file, each counted as often as it is read: two thousand conditions of two hundred bytes.
/// A megabyte of them takes two seconds without optimisation.
pub const FILE_EXPRESSION_BYTES: usize = 400 * 1024;

/// Bytes of scripts that are searched for an artifact's paths: a hundred paths in ten thousand bytes. What is not looked
/// at is not warned of.
pub const SEARCHED_BYTES: usize = 1024 * 1024;

/// Deepest nesting of an expression's syntax tree: evaluation recurses over it.
pub const EXPRESSION_DEPTH: usize = 64;

/// Nesting up to which an expression is evaluated where it is asked: in a debug build a level takes about 40 KiB of stack,
/// and every thread has 2 MiB.
pub(crate) const SHALLOW_DEPTH: usize = 8;

/// Nodes of an expression's syntax tree, macros expanded.
pub const EXPRESSION_NODES: usize = 500;

/// Nesting of `filter`, `map`, `all` and `exists`: each level multiplies the cost by the length of a list.
pub const COMPREHENSION_DEPTH: usize = 2;

/// Static cost of one expression or template, in units of about 100 ns: a tenth of a second at worst.
pub const EXPRESSION_COST: u64 = 1_000_000;

/// Largest value an expression may build, in bytes: the stack and heap of the sandbox are shared by all.
pub const VALUE_BYTES: u64 = 8 * 1024 * 1024;

/// Longest pattern for `matches`: it is compiled when its file is loaded.
pub const PATTERN_BYTES: usize = 256;

/// Estimated size of a compiled pattern, in states: counted repetitions multiply it.
pub const PATTERN_STATES: u64 = 10_000;

/// Bytes of a compiled pattern, for one that the estimate takes for smaller than it is.
pub const PATTERN_COMPILED_BYTES: usize = 2 * 1024 * 1024;

/// Expressions of one template: a script with more is generated, not written.
pub const TEMPLATE_EXPRESSIONS: usize = 100;

/// Jobs of one scan that an expression can reach by index or iterate over; `size` counts all.
pub const HISTORY_JOBS: usize = 100;

/// Older successes that iteration still reaches behind the newest jobs.
pub const HISTORY_SUCCESSES: usize = 2;

/// Stack of a sandbox thread: measured need of the deepest accepted expression is below 1 MiB; it is committed lazily.
pub const SANDBOX_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Threads of the process's sandbox: two at least, so that an evaluation does not wait for a file that is parsed, and no
/// more than a small machine has cores.
pub const SANDBOX_THREADS: std::ops::RangeInclusive<usize> = 2..=4;

/// Steps of one scan: each is a part of its job's record, which one commit must hold.
pub const STEPS: usize = 1_000;

/// Artifacts of one scan: each is a part of its job's record and of its scan's head.
pub const ARTIFACTS: usize = 100;

/// Inputs of one dispatch (specification, "Limits").
pub const INPUTS: usize = 20;

/// Characters of one input value (specification, "Limits").
pub const INPUT_CHARS: usize = 65_535;

/// Longest name of a variable, secret or input: it is an environment name and a part of paths.
pub const VARIABLE_NAME_BYTES: usize = 64;

/// Longest scan name: it is a folder name of the state tree.
pub const SCAN_NAME_BYTES: usize = 200;

/// Longest artifact name: it is a file name of the state tree.
pub const ARTIFACT_NAME_BYTES: usize = 200;

/// Longest life of a job (design section 3): the worker session token ends then.
pub const JOB_TIMEOUT: TimeDelta = TimeDelta::hours(4);

/// Longest duration a file may state; longer ones are typing errors, and dates must stay in range.
pub const DURATION: TimeDelta = TimeDelta::days(3_660);

/// Further jobs a `retry` may ask for (design section 3).
pub const RETRY_ATTEMPTS: u8 = 10;

/// First back-off of a `retry` that states none.
pub const RETRY_BACKOFF: TimeDelta = TimeDelta::seconds(10);

/// Labels of one `runs_on`, and names of one `pass_env`: they are compared and copied at every job.
pub const LABELS: usize = 50;

/// Characters of one label.
pub const LABEL_CHARS: usize = 100;

/// Characters of a workflow's `name`; it is shown in tables.
pub const TITLE_CHARS: usize = 200;

/// Days searched for a cron schedule's next time: 29 February is at most eight years away.
pub const CRON_DAYS: u32 = 9 * 366;

/// Pairs of entries that a comparison of two lists looks at: a few megabytes, and milliseconds.
pub const DIFF_CELLS: usize = 1_000_000;

/// Scans that one scan is compared with to find which it was, when many run the same scripts.
pub const RENAME_CANDIDATES: usize = 8;
