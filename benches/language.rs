//! The cost of the language. The project's targets: checking a file of 2,000 scans takes at most 100 ms, and reading a
//! scan in an expression takes 2 µs for any length of its history.
//!
//!     cargo bench --package workflow --bench language

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;

use chrono::{DateTime, TimeDelta};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use workflow::{
    Context, Expression, JobSummary, Sandbox, ScanHistory, Site, TemplatePolicy, diff, parse,
};

/// Number of scans in the checked file.
const SCANS: usize = 2_000;

/// A file of about 200 KB in which each scan waits for the previous scan.
fn file() -> String {
    let mut text = String::from("scans:\n  s0: {on: {cron: 0 3 * * *}, steps: [{run: echo}]}\n");
    for n in 1..SCANS {
        writeln!(
            text,
            "  s{n}:\n    on: {{expr: scans.s{}.is_available()}}\n    steps: [{{run: ./probe --depth {n} --quiet}}]",
            n - 1
        )
        .expect("writing to a string");
    }
    text
}

fn check(criterion: &mut Criterion) {
    let text = file();
    let mut group = criterion.benchmark_group("check");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function(format!("{SCANS} scans"), |bencher| {
        bencher.iter(|| parse("bench.yaml", black_box(&text), TemplatePolicy::Warn).is_ok());
    });
    let read = |text: &str| {
        parse("bench.yaml", text, TemplatePolicy::Warn)
            .expect("the file is valid")
            .workflow
    };
    let before = read(&text);
    let after = read(&text.replace("--quiet", "--loud"));
    group.bench_function(format!("difference of {SCANS} scans"), |bencher| {
        bencher.iter(|| diff(black_box(&before), black_box(&after)));
    });
    group.finish();
}

/// A scan with this many jobs, as an expression sees it.
fn context(jobs: usize) -> Context {
    let job = |n: usize| JobSummary {
        id: format!("01a1f8d3-ea00-7919-b013-{n:012}"),
        state: "succeeded".to_owned(),
        trigger: "cron".to_owned(),
        revision: "e676b378-ee88-5e67-9537-66b6979a8385".to_owned(),
        created_at: DateTime::UNIX_EPOCH + TimeDelta::hours(i64::try_from(n).unwrap_or_default()),
        started_at: None,
        finished_at: None,
        artifacts: BTreeMap::new(),
        outputs: BTreeMap::new(),
    };
    let history = ScanHistory {
        size: jobs as u64,
        jobs: (0..jobs).rev().map(job).collect(),
        available: true,
        failed: false,
        successes: jobs as u64,
        newest_successes: Vec::new(),
        newest_success_ids: Vec::new(),
        news: None,
    };
    Context {
        job: None,
        project: "project".to_owned(),
        workflow: "workflow".to_owned(),
        revision: "revision".to_owned(),
        vars: BTreeMap::new(),
        secrets: BTreeMap::new(),
        inputs: BTreeMap::new(),
        callback: workflow::CallbackSummary::default(),
        scans: BTreeMap::from([("build".to_owned(), history)]),
        steps: BTreeMap::new(),
        ok: true,
    }
}

fn evaluate(criterion: &mut Criterion) {
    let expression = Expression::parse("scans.build.is_available()", Site::Trigger)
        .expect("the expression is valid");
    let sandbox = Sandbox::shared().expect("threads can be started");
    let mut group = criterion.benchmark_group("is_available");
    for jobs in [10, 100_000] {
        let context = context(jobs);
        group.bench_with_input(
            BenchmarkId::from_parameter(jobs),
            &context,
            |bencher, context| {
                bencher.iter(|| sandbox.holds(&expression, black_box(context)));
            },
        );
    }
    group.finish();
}

criterion_group!(language, check, evaluate);
criterion_main!(language);
