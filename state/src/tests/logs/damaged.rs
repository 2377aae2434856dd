//! Logs of jobs that are over with records that cannot be read.

use super::*;

/// What a reader of the log of a job that is over gets from a record on.
async fn read_over(opened: &Opened, job: &Job, from: u64) -> Vec<LogRecord> {
    let logs = opened.state.logs();
    let mut stream = logs.stream(job.id, from);
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

/// Each record that can be read, and the others by the records that say so.
fn told(records: &[LogRecord]) -> String {
    let told = records.iter().map(|LogRecord { n, record }| {
        if record.stream == Stream::Runner {
            let which = record
                .text
                .split(" of this log cannot be read")
                .next()
                .unwrap();
            let last = which.split(' ').next_back().unwrap();
            assert_eq!(last, n.to_string(), "readers go on behind it");
            format!("[{}]", which.split_once(' ').unwrap().1)
        } else {
            assert_eq!(record.text, format!("line {n}"));
            n.to_string()
        }
    });
    told.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn where_records_of_a_finished_log_cannot_be_read_one_says_so() {
    type Change<'a> = &'a (dyn Fn(usize, &str) -> String + 'a);
    let (folder, opened, _, job) = a_running_job().await;
    opened
        .state
        .logs()
        .append(job, 0, lines(0..10))
        .await
        .unwrap();
    let ended = opened.state.complete(completion(job, 10)).await.unwrap();
    // The commit holds the end of the log, and writes it once more.
    opened.state.settled().await.unwrap();
    let path = folder.root().join(Layout::log(job).as_str());
    let whole = std::fs::read_to_string(&path).unwrap();
    let edit = |change: Change<'_>| {
        let lines = whole.split_inclusive('\n').enumerate();
        let changed: String = lines.map(|(n, line)| change(n, line)).collect();
        std::fs::write(&path, changed).unwrap();
    };
    let flip = |line: &str| line.replacen('{', "[", 1);
    let cases: &[(&str, Change<'_>, &str)] = &[
        ("nothing", &|_, line| line.to_owned(), "0 1 2 3 4 5 6 7 8 9"),
        (
            "one line",
            &|n, line| if n == 3 { flip(line) } else { line.to_owned() },
            "0 1 2 [3] 4 5 6 7 8 9",
        ),
        (
            "three lines",
            &|n, line| {
                if (3..6).contains(&n) {
                    flip(line)
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 [3 to 5] 6 7 8 9",
        ),
        (
            "every second one",
            &|n, line| {
                if n % 2 == 0 {
                    flip(line)
                } else {
                    line.to_owned()
                }
            },
            "[0] 1 [2] 3 [4] 5 [6] 7 [8] 9",
        ),
        (
            "the last one",
            &|n, line| if n == 9 { flip(line) } else { line.to_owned() },
            "0 1 2 3 4 5 6 7 8 [9]",
        ),
        (
            "a line end",
            &|n, line| {
                if n == 7 {
                    line.replace('\n', "~")
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 3 4 5 6 [7 to 8] 9",
        ),
        (
            "the last line end",
            &|n, line| {
                if n == 9 {
                    line.replace('\n', "~")
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 3 4 5 6 7 8 [9]",
        ),
        (
            "a number",
            &|n, line| {
                if n == 3 {
                    line.replacen('3', "700", 1)
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 [3] 4 5 6 7 8 9",
        ),
        (
            "a lower number",
            &|n, line| {
                if n == 3 {
                    line.replacen('3', "1", 1)
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 [3] 4 5 6 7 8 9",
        ),
        (
            "lines taken out",
            &|n, line| {
                if (3..6).contains(&n) {
                    String::new()
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 [3 to 5] 6 7 8 9",
        ),
        (
            "a line put in",
            &|n, line| {
                if n == 3 {
                    format!("noise\n{line}")
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 3 4 5 6 7 8 9",
        ),
        (
            "the end cut off",
            &|n, line| {
                if n >= 4 {
                    String::new()
                } else {
                    line.to_owned()
                }
            },
            "0 1 2 3 [4 to 9]",
        ),
        ("everything", &|_, line| flip(line), "[0 to 9]"),
    ];
    for (what, change, wanted) in cases {
        edit(*change);
        assert_eq!(
            told(&read_over(&opened, &ended, 0).await),
            *wanted,
            "{what}"
        );
        for from in [4, 9, 10, 99] {
            // The same from there on; a reader that begins among missing ones is told of the rest.
            let all = read_over(&opened, &ended, 0).await;
            let rest: Vec<u64> = all
                .iter()
                .map(|record| record.n)
                .filter(|n| *n >= from)
                .collect();
            let found: Vec<u64> = read_over(&opened, &ended, from)
                .await
                .iter()
                .map(|record| record.n)
                .collect();
            assert_eq!(found, rest, "{what} from {from}");
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(told(&read_over(&opened, &ended, 0).await), "[0 to 9]");
}
