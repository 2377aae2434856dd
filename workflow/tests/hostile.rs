//! Hostile files: each must be refused or read within a limit of memory and of processor time, without a panic. The unit of
//! processor time is a plain file, so the limit also holds on a slow machine and for an unoptimised build. A separate process
//! reads each file, so a peak of memory belongs to this file. `cargo test -p workflow --test hostile -- --nocapture` prints the
//! costs.

#![expect(
    clippy::disallowed_methods,
    reason = "what a process costs is known to the system, and a peak of memory needs a process of its own"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]
#![expect(clippy::print_stdout, reason = "the figures are for a reader")]

use std::fs::read_to_string;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use workflow::{Code, TemplatePolicy, limits, parse, render};

const STEPS: &str = "    steps:\n      - run: ls\n";

/// Limit of memory for reading a file and reporting its problems, in addition to the file itself.
const MEMORY_KIB: u64 = 64 * 1024;

/// Scans of the plain file, whose processor time is the unit.
const PLAIN: usize = 200;

/// The limit for a file that is refused for its cost, in plain files. Each file takes a sixth of it or less, and most take far
/// less.
const REFUSED: u32 = 10;

/// The limit for a file of the largest allowed size, which is about sixty times as long as the plain file. Each file takes a
/// third of it or less: the parsers of YAML and of expressions take most of the time.
const LONG: u32 = 300;

/// Each file is read this many times, and the fastest run counts, because other processes make some runs slower.
const TRIES: usize = 5;

/// A file and its expected result.
struct Hostile {
    name: &'static str,
    text: Box<dyn Fn() -> String>,
    /// The expected error; `None` for a valid long file.
    code: Option<Code>,
    /// The bound, in plain files.
    times: u32,
}

/// A scan with a condition.
fn condition(text: &str) -> String {
    format!("scans:\n  a:\n    on: {{ dispatch: {{}} }}\n{STEPS}        if: >-\n          {text}\n")
}

/// `count` scans, each with these lines.
fn scans(count: usize, lines: impl Fn(usize) -> String) -> String {
    let scan = |number| format!("  s{number}:\n{}", lines(number));
    std::iter::once("scans:\n".to_owned())
        .chain((0..count).map(scan))
        .collect()
}

/// Repeats a part until the file is as large as it may be.
fn filled(head: &str, part: &str) -> String {
    let room = limits::FILE_BYTES - head.len();
    format!("{head}{}", part.repeat(room / part.len()))
}

fn alias_bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 9].join(", ");
        text += &format!("a{level}: &a{level} [{items}]\n");
    }
    text
}

fn of(
    name: &'static str,
    times: u32,
    code: impl Into<Option<Code>>,
    text: impl Fn() -> String + 'static,
) -> Hostile {
    Hostile {
        name,
        text: Box::new(text),
        code: code.into(),
        times,
    }
}

/// A simple file that uses both parsers.
fn plain() -> Hostile {
    of("plain", 1, None, || {
        scans(PLAIN, |_| {
            format!("    on: {{ dispatch: {{}} }}\n{STEPS}        if: vars.A == 'a'\n")
        })
    })
}

/// Files whose cost would be far out of proportion to their length, or unlimited.
fn bombs() -> Vec<Hostile> {
    let all = || "scans.a.all(x1, ".repeat(12) + "ok" + &")".repeat(12);
    let map = || {
        format!(
            "size([{0}].map(a, [{0}].map(b, [{0}].map(c, [a, b, c])))) > 0",
            ["'xxxxxxxx'"; 8].join(",")
        )
    };
    let growing = "size(scans.a.map(x, vars.A + vars.A + vars.A + vars.A + vars.A)) > 0";
    vec![
        of("alias bomb", REFUSED, Code::AliasBudget, alias_bomb),
        of("100,000 nested brackets", REFUSED, Code::TooDeep, || {
            "[".repeat(100_000)
        }),
        of("100,000 nested objects", REFUSED, Code::TooDeep, || {
            "{a: ".repeat(100_000)
        }),
        of("300,000 nested lists", REFUSED, Code::TooDeep, || {
            "- ".repeat(300_000)
        }),
        of("100 MB", REFUSED, Code::FileTooLarge, || {
            filled("scans:\n", "#").repeat(100)
        }),
        of("10,000 terms", REFUSED, Code::ExpressionTooLarge, || {
            condition(&vec!["1"; 10_000].join(" + "))
        }),
        of("500 terms", REFUSED, Code::ExpressionTooLarge, || {
            condition(&vec!["1"; 340].join("+ "))
        }),
        of(
            "nested brackets in an expression",
            REFUSED,
            Code::ExpressionTooLarge,
            || condition(&("(".repeat(500) + "ok" + &")".repeat(500))),
        ),
        of(
            "chain of members",
            REFUSED,
            Code::ExpressionTooLarge,
            || condition(&format!("dyn(vars.A){} == 1", ".a".repeat(450))),
        ),
        of(
            "nested all()",
            REFUSED,
            Code::ExpressionTooCostly,
            move || condition(&all()),
        ),
        of(
            "nested map()",
            REFUSED,
            Code::ExpressionTooCostly,
            move || condition(&map()),
        ),
        of(
            "growing map()",
            REFUSED,
            Code::ExpressionTooCostly,
            move || condition(growing),
        ),
        of("huge pattern", REFUSED, Code::ExpressionTooCostly, || {
            condition("vars.A.matches('((\\\\w{100}){100}){100}')")
        }),
        of("long pattern", REFUSED, Code::ExpressionTooCostly, || {
            condition(&format!("vars.A.matches('{}')", "a|".repeat(400)))
        }),
    ]
}

/// Files of the largest size whose parts are all harmless.
fn long_files() -> Vec<Hostile> {
    let cheap = |_| format!("    on: {{ cron: 0 3 * * * }}\n{STEPS}");
    // As many scans as fit into a file, each as short as possible.
    let shortest = |trigger: &str| {
        let mut text = "scans:\n".to_owned();
        for number in 0.. {
            let scan = format!("  s{number}: {{on: {{{trigger}}}, steps: [run: ls]}}\n");
            if text.len() + scan.len() > limits::FILE_BYTES {
                break;
            }
            text += &scan;
        }
        text
    };
    let waits_for =
        |scan: usize| format!("    on: {{ expr: 'scans.s{scan}.is_available()' }}\n{STEPS}");
    // This many bytes of conditions of the largest length.
    let conditions = |bytes: usize, unit: &str| {
        let expression = unit.repeat(limits::EXPRESSION_BYTES / unit.len() - 1);
        let count = bytes / (expression.len() + 2);
        let step = format!("      - run: ls\n        if: {expression}ok\n");
        let steps = step.repeat(count / 2);
        scans(2, |_| {
            format!("    on: {{ dispatch: {{}} }}\n    steps:\n{steps}")
        })
    };
    let many = limits::FILE_EXPRESSION_BYTES;
    let dispatched = "scans:\n  a:\n    on: { dispatch: {} }\n    steps:\n      - run: ";
    let path =
        format!("{dispatched}ls\n    artifacts:\n      - name: a\n        paths:\n          - ");
    let variable = format!("{dispatched}ls\n    env:\n      A: ");
    vec![
        of(
            "1 MiB of opened variables in a path",
            LONG,
            None,
            move || filled(&path, "${A "),
        ),
        of(
            "1 MiB of opened variables in a value",
            LONG,
            None,
            move || filled(&variable, "${A "),
        ),
        of("1 MiB of names that a script sets", LONG, None, move || {
            let names = (0..50_000).map(|n| format!("          V{n}=\n"));
            scans(1, cheap) + &names.collect::<String>()
        }),
        of("1 MiB on one line", LONG, Code::FileTooComplex, || {
            filled("[", "a, ")
        }),
        of("1 MiB of comments", LONG, None, move || {
            filled(&scans(1, cheap), "# nothing\n")
        }),
        of("1 MiB of one text", LONG, None, move || {
            filled(&scans(1, cheap), "          x\n")
        }),
        of(
            "1 MiB of opened templates",
            LONG,
            Code::TooMany,
            move || filled(dispatched, "${{ a }} "),
        ),
        of("1 MiB of escapes", LONG, Code::Syntax, move || {
            filled(&format!("{dispatched}\""), "${{ \\u0061 }}")
        }),
        of("1 MiB of one key", LONG, Code::FileTooComplex, || {
            filled("", "a: 1\n")
        }),
        of("40,000 times one key", LONG, Code::DuplicateKey, || {
            "a: 1\n".repeat(40_000)
        }),
        of("30,000 unknown keys", LONG, Code::UnknownKey, || {
            (0..30_000).map(|n| format!("k{n}: \n")).collect()
        }),
        of("1 MiB of schedules", LONG, Code::TooMany, move || {
            shortest("cron: 0 3 * * *")
        }),
        of("1 MiB of scans to dispatch", LONG, None, move || {
            shortest("dispatch: {}")
        }),
        of("3,000 scans in a chain", LONG, None, move || {
            scans(3_000, |number| match number {
                0 => cheap(0),
                _ => waits_for(number - 1),
            })
        }),
        of("3,000 scans in a ring", LONG, None, move || {
            scans(3_000, |number| waits_for((number + 1) % 3_000))
        }),
        of("3,000 unknown scans", LONG, Code::UnknownScan, move || {
            scans(3_000, |number| waits_for(number + 3_000))
        }),
        of(
            "3,000 unknown time zones",
            LONG,
            Code::UnknownTimezone,
            || {
                scans(3_000, |_| {
                    format!("    on: {{ cron: 0 3 * * *, timezone: Europe/Berln }}\n{STEPS}")
                })
            },
        ),
        of(
            "3,000 cron schedules without a time",
            LONG,
            Code::CronNeverFires,
            || {
                scans(3_000, |_| {
                    format!("    on: {{ cron: 0 3 30 2 * }}\n{STEPS}")
                })
            },
        ),
        of("long conditions of many paths", LONG, None, || {
            let all = |from: Vec<usize>| {
                let terms: Vec<String> = from.iter().map(|n| format!("1<{n}")).collect();
                terms.join(" && ")
            };
            let paths: Vec<String> = (0..100).map(|n| format!("out/{n}")).collect();
            let (paths, reversed) = (paths.join(", "), all((10..120).rev().collect()));
            let artifacts: String = (0..100)
                .map(|n| format!("      - {{ name: a{n}, paths: [{paths}], if: {reversed} }}\n"))
                .collect();
            let made = all((10..120).collect());
            format!(
                "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    artifacts:\n{artifacts}{STEPS}        if: {made}\n"
            )
        }),
        of("400 long conditions", LONG, None, move || {
            conditions(many, "vars.A == 'a' || ")
        }),
        of(
            "980 long conditions",
            LONG,
            Code::FileTooComplex,
            move || conditions(950_000, "vars.A == 'a' || "),
        ),
        of(
            "980 broken conditions",
            LONG,
            Code::UnknownName,
            move || conditions(950_000, "nope || "),
        ),
    ]
}

fn files() -> Vec<Hostile> {
    let mut files = bombs();
    files.extend(long_files());
    files
}

/// The variable with the index of the file for this process.
const CASE: &str = "EVERSCAN_HOSTILE_FILE";

/// Marks the output of a process that has read its file: microseconds of the file and of a plain file, then KiB.
const COST: &str = "cost:";

#[test]
fn an_alias_bomb_costs_little() {
    each_is_within_its_bounds(0..bombs().len());
}

#[test]
fn a_long_file_costs_in_proportion() {
    each_is_within_its_bounds(bombs().len()..files().len());
}

fn each_is_within_its_bounds(places: Range<usize>) {
    for (at, file) in files().iter().enumerate() {
        if !places.contains(&at) {
            continue;
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_file", "--nocapture"])
            .env(CASE, at.to_string())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {stdout}{stderr}", file.name);
        let cost = stdout.lines().find_map(|line| line.split_once(COST));
        let cost: Vec<u64> = cost
            .unwrap()
            .1
            .split_whitespace()
            .map(|figure| figure.parse().unwrap())
            .collect();
        let (time, plain) = (
            Duration::from_micros(cost[0]),
            Duration::from_micros(cost[1]),
        );
        let (times, memory) = (time.div_duration_f64(plain), cost[2]);
        println!(
            "{:>36} {time:>12.1?} {times:>8.1} times {:>8.1} MiB",
            file.name,
            memory as f64 / 1024.0
        );
        assert!(
            times <= f64::from(file.times),
            "{} took {time:?}, and a plain file {plain:?}",
            file.name
        );
        assert!(memory <= MEMORY_KIB, "{} took {memory} KiB", file.name);
    }
}

/// Reads the file that the environment names, for the tests above. Without a name it does nothing.
#[test]
fn one_file() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    let file = files().into_iter().nth(case.parse().unwrap()).unwrap();
    let text = (file.text)();
    // Starts the parser's threads and tables before the hostile file is read.
    let _warm = parse(
        "warm.yaml",
        &condition("scans.a[0].id.matches('a')"),
        TemplatePolicy::Warn,
    );
    // Resets the peak of memory.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident("VmRSS:");
    let first = read(&file, &text);
    let memory = resident("VmHWM:").saturating_sub(before);
    let measure = plain();
    let plain_text = (measure.text)();
    let measure = (0..TRIES).map(|_| read(&measure, &plain_text)).min();
    let measure = measure.unwrap();
    let mut best = first;
    for _ in 1..TRIES {
        if best <= measure * file.times / 2 {
            break;
        }
        best = best.min(read(&file, &text));
    }
    let (best, measure) = (best.as_micros(), measure.as_micros());
    println!("{COST} {best} {measure} {memory}");
}

/// Reads a file, renders its problems, and returns the processor time.
fn read(file: &Hostile, text: &str) -> Duration {
    let begun = processor_time();
    let outcome = parse("hostile.yaml", text, TemplatePolicy::Warn);
    let diagnostics = match outcome {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    };
    let shown = render(&diagnostics, text, false);
    let took = processor_time().saturating_sub(begun);
    let codes: Vec<Code> = diagnostics.iter().map(|one| one.code).collect();
    assert!(!codes.contains(&Code::EngineUnavailable), "{shown}");
    if let Some(code) = file.code {
        assert!(codes.contains(&code), "{}: {codes:?}", file.name);
    } else {
        assert!(!shown.contains("error["), "{}: {shown}", file.name);
    }
    assert!(codes.len() <= limits::DIAGNOSTICS + 1, "{}", file.name);
    took
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let nanoseconds = threads.map(|thread| {
        let figures = read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
        let running = figures.split_whitespace().next().unwrap();
        running.parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Resident KiB, now or at the peak.
fn resident(which: &str) -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
