//! Tests searches of logs that are built line by line.

use bytes::Bytes;
use model::Timestamp;

use super::super::Stream;
use super::super::records::line;
use super::*;

fn record(step: u32, text: impl Into<String>) -> NewLogRecord {
    NewLogRecord {
        at: Timestamp::from_timestamp_millis(1_795_176_000_123).unwrap(),
        step: Some(step),
        stream: Stream::Stdout,
        text: text.into(),
    }
}

fn log<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    let numbered = (0..).zip(texts);
    numbered
        .map(|(n, text)| line(n, &record(0, text.as_ref())).unwrap())
        .collect()
}

fn wanted(text: &str) -> LogSearch {
    LogSearch {
        text: text.to_owned(),
        ignores_case: false,
        filter: LogFilter::default(),
        from: 0,
        limit: 1_000,
    }
}

fn run(lines: &[Vec<u8>], wanted: &LogSearch, piece: usize) -> LogMatches {
    let file = Bytes::from(lines.concat());
    let key = Key::new("log").unwrap();
    search(&file, &key, wanted, piece, &Awaited::always()).unwrap()
}

/// The numbers of the matches.
fn found(lines: &[Vec<u8>], wanted: &LogSearch) -> Vec<u64> {
    let found = run(lines, wanted, 1_000);
    assert_eq!(found.total, found.matches.len() as u64);
    assert_eq!(found.next, None);
    found.matches.iter().map(|found| found.n).collect()
}

#[test]
fn matches_are_found_for_every_piece_size() {
    let texts: Vec<String> = (0..50)
        .map(|n| format!("{}a needle{}", "x".repeat(n), "y".repeat(50 - n)))
        .collect();
    let lines = log(texts.iter().chain([&"nothing".to_owned()]));
    for piece in [1, 2, 7, 50, 130, 150, 151, 152, 1_000, 100_000] {
        let found = run(&lines, &wanted("needle"), piece);
        let shown: Vec<u64> = found.matches.iter().map(|found| found.n).collect();
        assert_eq!(shown, Vec::from_iter(0..50), "{piece}");
        assert_eq!((found.total, found.records), (50, 51), "{piece}");
        let texts_found = found.matches.iter().map(|found| &found.record.text);
        assert!(texts_found.eq(&texts), "{piece}");
    }
}

#[test]
fn only_the_text_of_a_record_is_searched() {
    let lines = log(["", "stdout", "text", "1", "a:b", "say \"text\":\""]);
    for (text, numbers) in [
        ("stdout", &[1][..]),
        ("text", &[2, 5]),
        ("1", &[3]),
        (":", &[4, 5]),
        ("\"text\":\"", &[5]),
        ("step", &[]),
        ("2026", &[]),
        ("{", &[]),
        ("}", &[]),
        ("\n", &[]),
    ] {
        assert_eq!(found(&lines, &wanted(text)), numbers, "{text}");
    }
}

#[test]
fn escapes_match_the_characters_they_encode() {
    let lines = log([
        "a\ttab",
        "nt",
        "C:\\new",
        "\u{1b}[31mred\u{1b}[0m",
        "say \"hello\"",
        "Grüße aus Köln \u{1f980}",
        "\\u001b is no escape here",
        "two\nlines",
    ]);
    for (text, numbers) in [
        ("\t", &[0][..]),
        ("a\tt", &[0]),
        ("t", &[0, 1, 7]),
        ("nt", &[1]),
        ("n", &[1, 2, 5, 6, 7]),
        ("\\", &[2, 6]),
        ("\\n", &[2]),
        (":\\new", &[2]),
        ("\u{1b}[31m", &[3]),
        ("u001b", &[6]),
        ("\\u001b", &[6]),
        ("\"", &[4]),
        ("\"hello\"", &[4]),
        ("Köln", &[5]),
        ("\u{1f980}", &[5]),
        ("ü", &[5]),
        ("o\nl", &[7]),
    ] {
        assert_eq!(found(&lines, &wanted(text)), numbers, "{text:?}");
    }
}

#[test]
fn case_is_ignored_for_ascii_letters() {
    let lines = log(["Error", "ERROR\t!", "error", "terror", "Ärger", "ärger"]);
    let folded = |text: &str| {
        let wanted = LogSearch {
            ignores_case: true,
            ..wanted(text)
        };
        found(&lines, &wanted)
    };
    assert_eq!(folded("error"), [0, 1, 2, 3]);
    assert_eq!(folded("eRRor"), [0, 1, 2, 3]);
    assert_eq!(folded("OR\t"), [1]);
    assert_eq!(folded("ÄRGER"), [4]);
    assert_eq!(found(&lines, &wanted("error")), [2, 3]);
    assert_eq!(found(&lines, &wanted("Error")), [0]);
}

#[test]
fn filters_give_the_same_result_on_raw_lines_and_records() {
    let later = Timestamp::from_timestamp(1_795_176_060, 0).unwrap();
    let mut records: Vec<NewLogRecord> = (0..40)
        .map(|n| record(n / 10, format!("line {n} \"x\"")))
        .collect();
    for (n, record) in records.iter_mut().enumerate() {
        match n % 5 {
            1 => record.stream = Stream::Stderr,
            2 => record.text = "line".to_owned(),
            3 => record.at = later,
            4 => (record.step, record.stream) = (None, Stream::Runner),
            _ => {}
        }
    }
    let lines: Vec<Vec<u8>> = (0..)
        .zip(&records)
        .map(|(n, record)| line(n, record).unwrap())
        .collect();
    let none = LogFilter::default();
    for filter in [
        none,
        LogFilter {
            step: Some(2),
            ..none
        },
        LogFilter {
            stream: Some(Stream::Stderr),
            ..none
        },
        LogFilter {
            stream: Some(Stream::Runner),
            ..none
        },
        LogFilter {
            since: Some(later),
            ..none
        },
        LogFilter {
            step: Some(9),
            ..none
        },
    ] {
        let expected: Vec<u64> = (0..)
            .zip(&records)
            .filter(|(_, record)| filter.takes(record))
            .map(|(n, _)| n)
            .collect();
        let wanted = LogSearch {
            filter,
            ..wanted("line")
        };
        assert_eq!(found(&lines, &wanted), expected, "{filter:?}");
    }
}

#[test]
fn damaged_lines_are_skipped() {
    type Damage = fn(&mut Vec<u8>);
    let whole = log((0..8).map(|n| format!("needle {n}")));
    let cases: &[(&str, Damage)] = &[
        ("the beginning", |line| line[0] = b'['),
        ("the number", |line| line[5] = b'x'),
        ("the frame", |line| line[10] = b'#'),
        ("the text", |line| {
            let at = line.len() - 5;
            line[at] = 0xff;
        }),
        ("a control character", |line| {
            let at = line.len() - 5;
            line[at] = 1;
        }),
        ("the line end", |line| *line.last_mut().unwrap() = b'~'),
        ("the end", |line| line.truncate(line.len() - 3)),
    ];
    for (what, damage) in cases {
        for n in [0, 3] {
            let mut lines = whole.clone();
            damage(&mut lines[n]);
            let found = found(&lines, &wanted("needle"));
            let is_joined = lines[n].last() != Some(&b'\n');
            let gone = n as u64..=n as u64 + u64::from(is_joined);
            let expected = (0..8).filter(|n| !gone.contains(n));
            assert!(found.iter().copied().eq(expected), "{what} {n}: {found:?}");
        }
    }
    // A crash can leave half a line at the end.
    let mut lines = whole;
    lines.push(lines[0][..lines[0].len() - 1].to_vec());
    let found = run(&lines, &wanted("needle"), 64);
    assert_eq!((found.total, found.records), (8, 8));
    let nothing = run(&[], &wanted("needle"), 64);
    assert_eq!(nothing, LogMatches::default());
}

#[test]
fn all_matches_are_counted_and_one_page_is_returned() {
    let lines = log((0..100).map(|n| format!("{} {n}", if n % 2 == 0 { "even" } else { "odd" })));
    let (mut from, mut pages) = (0, Vec::new());
    loop {
        let wanted = LogSearch {
            from,
            limit: 20,
            ..wanted("even")
        };
        let found = run(&lines, &wanted, 300);
        assert_eq!((found.total, found.records), (50, 100));
        pages.push(found.matches.iter().map(|it| it.n).collect::<Vec<_>>());
        match found.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 10]);
    let expected = (0..50).map(|n| 2 * n);
    assert!(pages.concat().into_iter().eq(expected));
    let behind = LogSearch {
        from: 99,
        ..wanted("even")
    };
    let found = run(&lines, &behind, 300);
    assert_eq!(
        (found.total, found.matches.len(), found.next),
        (50, 0, None)
    );
}

#[test]
fn a_page_with_long_texts_has_fewer_matches() {
    let text = "x".repeat(FOUND_TEXT_BYTES / 2);
    let lines = log([text.as_str(), &text, &text, "x"]);
    let found = run(&lines, &wanted("x"), 1_000);
    assert_eq!(
        (found.total, found.matches.len(), found.next),
        (4, 2, Some(2))
    );
}

#[test]
fn a_search_ends_when_nobody_waits_for_it() {
    let file = Bytes::from(log(["a"]).concat());
    let key = Key::new("log").unwrap();
    let gone = search(&file, &key, &wanted("a"), 1, &Awaited::by_nobody());
    assert!(matches!(gone, Err(ReadError::Interrupted)));
}
