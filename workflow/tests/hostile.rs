//! Files made to hurt: each is refused or read, without a panic, in bounded time and memory. `cargo test -p workflow
//! --test hostile -- --ignored --nocapture` prints what each costs.

#![expect(
    clippy::disallowed_methods,
    reason = "a figure needs a clock, and a peak of memory a process of its own"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]
#![expect(clippy::print_stdout, reason = "the figures are for a reader")]

use std::process::Command;
use std::time::{Duration, Instant};

use workflow::{Code, TemplatePolicy, limits, parse, render};

const STEPS: &str = "    steps:\n      - run: ls\n";

/// A scan with a condition.
fn condition(text: &str) -> String {
    format!("scans:\n  a:\n    on: {{ dispatch: {{}} }}\n{STEPS}        if: >-\n          {text}\n")
}

/// So many scans, each with these lines.
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

/// Files that an unoptimised parser takes seconds for; they are among the figures only.
const SLOW: [&str; 5] = [
    "18,000 scans",
    "1 MiB on one line",
    "1 MiB of one key",
    "980 long conditions",
    "980 broken conditions",
];

/// Name, file, and the code it must be refused with; `None` for one that is merely long.
fn files() -> Vec<(&'static str, String, Option<Code>)> {
    let cheap = |_| format!("    on: {{ cron: 0 3 * * * }}\n{STEPS}");
    let shortest = |number| format!("  s{number}: {{on: {{cron: 0 3 * * *}}, steps: [run: ls]}}\n");
    let many = std::iter::once("scans:\n".to_owned()).chain((0..18_000).map(shortest));
    let all = "scans.a.all(x1, ".repeat(12) + "ok" + &")".repeat(12);
    let map = format!(
        "size([{0}].map(a, [{0}].map(b, [{0}].map(c, [a, b, c])))) > 0",
        ["'xxxxxxxx'"; 8].join(",")
    );
    let growing = "size(scans.a.map(x, vars.A + vars.A + vars.A + vars.A + vars.A)) > 0".to_owned();
    let long = |unit: &str| {
        let expression = unit.repeat(limits::EXPRESSION_BYTES / unit.len() - 1);
        let step = format!("      - run: ls\n        if: {expression}ok\n");
        scans(2, |_| {
            format!(
                "    on: {{ dispatch: {{}} }}\n    steps:\n{}",
                step.repeat(490)
            )
        })
    };
    vec![
        ("alias bomb", alias_bomb(), Some(Code::AliasBudget)),
        (
            "100,000 nested brackets",
            "[".repeat(100_000),
            Some(Code::TooDeep),
        ),
        (
            "100,000 nested objects",
            "{a: ".repeat(100_000),
            Some(Code::TooDeep),
        ),
        (
            "300,000 nested lists",
            "- ".repeat(300_000),
            Some(Code::TooDeep),
        ),
        (
            "100 MB",
            filled("scans:\n", "#").repeat(100),
            Some(Code::FileTooLarge),
        ),
        ("1 MiB on one line", filled("[", "a, "), Some(Code::Syntax)),
        (
            "1 MiB of comments",
            filled(&scans(1, cheap), "# nothing\n"),
            None,
        ),
        (
            "1 MiB of one text",
            filled(&scans(1, cheap), "          x\n"),
            None,
        ),
        (
            "1 MiB of opened templates",
            filled(
                "scans:\n  a:\n    on: { dispatch: {} }\n    steps:\n      - run: ",
                "${{ a }} ",
            ),
            Some(Code::TooMany),
        ),
        (
            "1 MiB of escapes",
            filled(
                "scans:\n  a:\n    on: { dispatch: {} }\n    steps:\n      - run: \"",
                "${{ \\u0061 }}",
            ),
            Some(Code::Syntax),
        ),
        (
            "10,000 terms",
            condition(&vec!["1"; 10_000].join(" + ")),
            Some(Code::ExpressionTooLarge),
        ),
        (
            "500 terms",
            condition(&vec!["1"; 340].join("+ ")),
            Some(Code::ExpressionTooLarge),
        ),
        (
            "nested brackets in an expression",
            condition(&("(".repeat(500) + "ok" + &")".repeat(500))),
            Some(Code::ExpressionTooLarge),
        ),
        (
            "chain of members",
            condition(&format!("dyn(vars.A){} == 1", ".a".repeat(450))),
            Some(Code::ExpressionTooLarge),
        ),
        (
            "nested all()",
            condition(&all),
            Some(Code::ExpressionTooCostly),
        ),
        (
            "nested map()",
            condition(&map),
            Some(Code::ExpressionTooCostly),
        ),
        (
            "growing map()",
            condition(&growing),
            Some(Code::ExpressionTooCostly),
        ),
        (
            "huge pattern",
            condition("vars.A.matches('((\\\\w{100}){100}){100}')"),
            Some(Code::ExpressionTooCostly),
        ),
        (
            "long pattern",
            condition(&format!("vars.A.matches('{}')", "a|".repeat(400))),
            Some(Code::ExpressionTooCostly),
        ),
        ("18,000 scans", many.collect(), None),
        (
            "3,000 scans in a chain",
            scans(3_000, |number| match number {
                0 => cheap(0),
                _ => format!(
                    "    on: {{ expr: 'scans.s{}.is_available()' }}\n{STEPS}",
                    number - 1
                ),
            }),
            None,
        ),
        (
            "3,000 scans in a ring",
            scans(3_000, |number| {
                format!(
                    "    on: {{ expr: 'scans.s{}.is_available()' }}\n{STEPS}",
                    (number + 1) % 3_000
                )
            }),
            None,
        ),
        (
            "3,000 unknown scans",
            scans(3_000, |number| {
                format!("    on: {{ expr: 'scans.t{number}.is_available()' }}\n{STEPS}")
            }),
            Some(Code::UnknownScan),
        ),
        (
            "3,000 unknown time zones",
            scans(3_000, |_| {
                format!("    on: {{ cron: 0 3 * * *, timezone: Europe/Berln }}\n{STEPS}")
            }),
            Some(Code::UnknownTimezone),
        ),
        (
            "3,000 cron schedules without a time",
            scans(3_000, |_| {
                format!("    on: {{ cron: 0 3 30 2 * }}\n{STEPS}")
            }),
            Some(Code::CronNeverFires),
        ),
        (
            "30,000 unknown keys",
            (0..30_000).map(|n| format!("k{n}: \n")).collect(),
            Some(Code::UnknownKey),
        ),
        (
            "1 MiB of one key",
            filled("", "a: 1\n"),
            Some(Code::DuplicateKey),
        ),
        ("980 long conditions", long("vars.A == 'a' || "), None),
        ("980 broken conditions", long("nope || "), None),
    ]
}

#[test]
fn every_file_is_refused_or_read() {
    for (name, text, code) in files() {
        if SLOW.contains(&name) {
            continue;
        }
        let begun = Instant::now();
        let outcome = parse("hostile.yaml", &text, TemplatePolicy::Deny);
        let codes: Vec<Code> = match &outcome {
            Ok(_) => Vec::new(),
            Err(diagnostics) => diagnostics.iter().map(|one| one.code).collect(),
        };
        assert!(!codes.contains(&Code::EngineUnavailable), "{name}");
        if let Some(code) = code {
            assert!(codes.contains(&code), "{name}: {codes:?}");
        }
        assert!(codes.len() <= limits::DIAGNOSTICS + 1, "{name}");
        // Far above what any takes, and far below what one without a bound would.
        assert!(begun.elapsed() < Duration::from_secs(60), "{name}");
    }
}

/// The file that a process of its own is to read.
const CASE: &str = "EVERSCAN_HOSTILE_FILE";

#[test]
#[ignore = "prints figures"]
fn figures() {
    let files = files();
    if let Ok(case) = std::env::var(CASE) {
        let (_, text, _) = files.into_iter().nth(case.parse().unwrap()).unwrap();
        // The parser's thread and tables are there before a hostile file comes.
        let _warm = parse(
            "warm.yaml",
            &condition("scans.a[0].id.matches('a')"),
            TemplatePolicy::Warn,
        );
        // Makes the peak of memory start anew.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = resident();
        let begun = Instant::now();
        let outcome = parse("hostile.yaml", &text, TemplatePolicy::Warn);
        let parsed = begun.elapsed();
        let shown = outcome.map_or_else(|problems| render(&problems, &text, false).len(), |_| 0);
        println!(
            "{:>9.1} ms, {:>9.1} ms with {shown:>8} bytes of messages, {:>6.1} MiB",
            parsed.as_secs_f64() * 1e3,
            begun.elapsed().as_secs_f64() * 1e3,
            (resident().1 - before.0) as f64 / 1024.0
        );
        return;
    }
    for (at, (name, text, _)) in files.iter().enumerate() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "figures", "--ignored", "--nocapture"])
            .env(CASE, at.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let figure = said.lines().find(|line| line.contains(" MiB"));
        println!(
            "{name:>36} {:>9} bytes {}",
            text.len(),
            figure.unwrap_or("died")
        );
    }
}

/// KiB that are resident, and that were at most.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (value("VmRSS:"), value("VmHWM:"))
}
