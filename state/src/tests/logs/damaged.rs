//! Tests logs of finished jobs with unreadable records.

use super::*;

/// Reads the log of a finished job from a record on, with marks.
async fn read_finished(opened: &Opened, job: &Job, from: u64) -> Vec<LogRecord> {
    read_filtered(opened, job, from, LogFilter::default()).await
}

async fn read_filtered(opened: &Opened, job: &Job, from: u64, filter: LogFilter) -> Vec<LogRecord> {
    let logs = opened.state.logs();
    let mut stream = logs.stream(job.id, from).filtered(filter);
    logs.mark_damage(&mut stream);
    let mut bytes = Vec::new();
    loop {
        let (next, chunk) = stream.next().await;
        stream = next;
        match chunk.unwrap() {
            Some(chunk) => bytes.extend_from_slice(&chunk),
            None => break,
        }
    }
    let (run, end) = (job.state.run().unwrap(), job.state.end().unwrap());
    bytes.extend(
        stream
            .missing_end(run.log_records, end.at)
            .unwrap_or_default(),
    );
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The numbers of readable records, and in brackets the ranges that marks replace.
fn summary(records: &[LogRecord]) -> String {
    let summary = records.iter().map(|LogRecord { n, record }| {
        if record.stream == Stream::Runner {
            let which = record
                .text
                .split(" of this log cannot be read")
                .next()
                .unwrap();
            let last = which.split(' ').next_back().unwrap();
            assert_eq!(
                last,
                n.to_string(),
                "a mark does not have the number of the last unreadable record"
            );
            format!("[{}]", which.split_once(' ').unwrap().1)
        } else {
            assert_eq!(record.text, format!("line {n}"));
            n.to_string()
        }
    });
    summary.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_mark_replaces_unreadable_records_of_a_finished_log() {
    type Change = fn(&str) -> String;
    let (folder, opened, _, job) = a_running_job().await;
    opened.append(job, 0, lines(0..10)).await;
    let ended = opened.state.complete(completion(job, 10)).await.unwrap();
    // Wait until the end of the log from the commit is written.
    opened.state.settled().await.unwrap();
    let path = folder.path(&Layout::log(job));
    let whole = std::fs::read_to_string(&path).unwrap();
    let flip = |line: &str| line.replacen('{', "[", 1);
    let without = |_: &str| String::new();
    let joined = |line: &str| line.replace('\n', "~");
    // The name of the damage, the changed lines, the change, and the expected result.
    let cases: &[(&str, &[usize], Change, &str)] = &[
        ("nothing", &[], flip, "0 1 2 3 4 5 6 7 8 9"),
        ("one line", &[3], flip, "0 1 2 [3] 4 5 6 7 8 9"),
        ("three lines", &[3, 4, 5], flip, "0 1 2 [3 to 5] 6 7 8 9"),
        (
            "every second line",
            &[0, 2, 4, 6, 8],
            flip,
            "[0] 1 [2] 3 [4] 5 [6] 7 [8] 9",
        ),
        ("the last line", &[9], flip, "0 1 2 3 4 5 6 7 8 [9]"),
        ("a line end", &[7], joined, "0 1 2 3 4 5 6 [7 to 8] 9"),
        ("the last line end", &[9], joined, "0 1 2 3 4 5 6 7 8 [9]"),
        (
            "a number",
            &[3],
            |line| line.replacen('3', "700", 1),
            "0 1 2 [3] 4 5 6 7 8 9",
        ),
        (
            "a lower number",
            &[3],
            |line| line.replacen('3', "1", 1),
            "0 1 2 [3] 4 5 6 7 8 9",
        ),
        (
            "lines taken out",
            &[3, 4, 5],
            without,
            "0 1 2 [3 to 5] 6 7 8 9",
        ),
        (
            "a line put in",
            &[3],
            |line| format!("noise\n{line}"),
            "0 1 2 3 4 5 6 7 8 9",
        ),
        (
            "the end cut off",
            &[4, 5, 6, 7, 8, 9],
            without,
            "0 1 2 3 [4 to 9]",
        ),
        (
            "everything",
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            flip,
            "[0 to 9]",
        ),
    ];
    for (what, numbers, change, wanted) in cases {
        let lines = whole.split_inclusive('\n').enumerate();
        let changed = lines.map(|(n, line)| match numbers.contains(&n) {
            true => change(line),
            false => line.to_owned(),
        });
        std::fs::write(&path, changed.collect::<String>()).unwrap();
        // Read all records first. Readers that begin later must get the same records and marks.
        let all = read_finished(&opened, &ended, 0).await;
        assert_eq!(summary(&all), *wanted, "{what}");
        // Marks are returned for every filter, because unreadable records may match.
        let other_step = LogFilter {
            step: Some(7),
            ..LogFilter::default()
        };
        let marks = all.iter().filter(|it| it.record.stream == Stream::Runner);
        let filtered = read_filtered(&opened, &ended, 0, other_step).await;
        assert!(filtered.iter().eq(marks), "{what}: {filtered:?}");
        for from in [4, 9, 10, 99] {
            let numbers = |records: &[LogRecord]| -> Vec<u64> {
                let numbers = records.iter().map(|record| record.n);
                numbers.filter(|n| *n >= from).collect()
            };
            let rest = numbers(&all);
            let found = numbers(&read_finished(&opened, &ended, from).await);
            assert_eq!(found, rest, "{what} from {from}");
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        summary(&read_finished(&opened, &ended, 0).await),
        "[0 to 9]"
    );
}
