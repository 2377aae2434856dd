use chrono::DateTime;
use tempfile::TempDir;
use wire::{NewLogRecord, Stream};

use super::*;

fn record(number: u64) -> NewLogRecord {
    NewLogRecord {
        at: DateTime::from_timestamp_micros(1_790_000_000_123_456).unwrap(),
        step: (!number.is_multiple_of(3)).then_some(number as u32),
        stream: match number % 3 {
            0 => Stream::Runner,
            1 => Stream::Stdout,
            _ => Stream::Stderr,
        },
        text: format!("line {number} \0 ü {}", "x".repeat(number as usize % 50)),
    }
}

fn records(range: std::ops::Range<u64>) -> Vec<NewLogRecord> {
    range.map(record).collect()
}

fn append(spool: &mut Spool, records: &[NewLogRecord]) {
    let appended = spool.append(|out| {
        for record in records {
            let head = RecordHead::new(record.at, record.step, record.stream);
            out.add(&head, &record.text);
        }
    });
    appended.unwrap();
}

fn read(spool: &mut Spool, from: u64, max_bytes: usize) -> Vec<NewLogRecord> {
    let batch = spool.read(from, max_bytes).unwrap();
    serde_json::from_slice(&batch.json).unwrap()
}

fn spool(segment_bytes: u64) -> (TempDir, Spool) {
    let folder = TempDir::new().unwrap();
    let spool = Spool::with_segments_of(folder.path().join("spool/job"), 0, segment_bytes);
    (folder, spool)
}

fn files(spool: &Spool) -> usize {
    std::fs::read_dir(&spool.folder).map_or(0, Iterator::count)
}

#[test]
fn what_goes_in_comes_out() {
    let (_folder, mut spool) = spool(limits::SPOOL_SEGMENT_BYTES);
    append(&mut spool, &records(0..4));
    append(&mut spool, &records(4..10));
    assert_eq!(spool.next(), 10);
    assert_eq!(read(&mut spool, 0, usize::MAX), records(0..10));
    assert_eq!(read(&mut spool, 10, usize::MAX), []);
    assert_eq!(read(&mut spool, 7, usize::MAX), records(7..10));
}

#[test]
fn a_job_that_writes_nothing_makes_no_file() {
    let (folder, mut spool) = spool(limits::SPOOL_SEGMENT_BYTES);
    append(&mut spool, &[]);
    assert_eq!(read(&mut spool, 0, 100), []);
    spool.remove();
    assert!(!folder.path().join("spool").exists());
}

#[test]
fn a_cut_spool_continues_where_it_was_cut() {
    for at in 0..100 {
        let (_folder, mut spool) = spool(600);
        for number in 0..100 {
            append(&mut spool, &records(number..number + 1));
        }
        spool.read(at / 2, 300).unwrap();
        assert_eq!(spool.cut(at).unwrap(), 100 - at);
        assert_eq!(spool.cut(at).unwrap(), 0);
        append(&mut spool, &records(200..202));
        let mut expected = records(0..at);
        expected.extend(records(200..202));
        assert_eq!(read(&mut spool, 0, usize::MAX), expected, "{at}");
        assert_eq!(read(&mut spool, at, usize::MAX), records(200..202));
    }
}

#[test]
fn a_batch_is_bounded_but_never_empty() {
    let (_folder, mut spool) = spool(limits::SPOOL_SEGMENT_BYTES);
    append(&mut spool, &records(0..100));
    let mut from = 0;
    while from < 100 {
        let json = spool.read(from, 1000).unwrap().json;
        let batch: Vec<NewLogRecord> = serde_json::from_slice(&json).unwrap();
        assert!(
            !batch.is_empty() && json.len() <= 1000,
            "{} bytes",
            json.len()
        );
        assert_eq!(batch, records(from..from + batch.len() as u64));
        from += batch.len() as u64;
    }
    assert_eq!(read(&mut spool, 3, 1), records(3..4));
}

#[test]
fn records_larger_than_a_block_together_are_read_across_blocks() {
    let (_folder, mut spool) = spool(limits::SPOOL_SEGMENT_BYTES);
    let long = |number: usize| NewLogRecord {
        text: "\u{1}".repeat(limits::LINE_BYTES - number),
        ..record(1)
    };
    let all: Vec<_> = (0..12).map(long).collect();
    append(&mut spool, &all);
    assert_eq!(read(&mut spool, 0, usize::MAX), all);
    assert_eq!(read(&mut spool, 11, usize::MAX), all[11..]);
    let batch = spool.read(0, limits::BATCH_BYTES).unwrap();
    assert!(batch.json.len() <= limits::BATCH_BYTES);
}

#[test]
fn durable_segments_are_forgotten_and_the_rest_can_be_read_again() {
    let (_folder, mut spool) = spool(200);
    for number in 0..50 {
        append(&mut spool, &[record(number)]);
    }
    let before = files(&spool);
    assert!(before > 5);
    assert_eq!(read(&mut spool, 0, usize::MAX), records(0..50));
    spool.forget_below(25);
    assert!(files(&spool) < before);
    assert_eq!(read(&mut spool, 25, usize::MAX), records(25..50));
    assert!(matches!(
        spool.read(0, 1),
        Err(SpoolError::Forgotten { number: 0 })
    ));
    append(&mut spool, &[record(50)]);
    assert_eq!(read(&mut spool, 50, usize::MAX), records(50..51));
    spool.forget_below(51);
    assert_eq!(read(&mut spool, 51, usize::MAX), []);
    append(&mut spool, &[record(51)]);
    assert_eq!(read(&mut spool, 51, usize::MAX), records(51..52));
}

#[test]
fn records_forgotten_after_their_reading_leave_the_rest_readable() {
    let (_folder, mut spool) = spool(200);
    for number in 0..50 {
        append(&mut spool, &[record(number)]);
    }
    for number in 0..50 {
        assert_eq!(read(&mut spool, number, 1), [record(number)]);
        spool.forget_below(number + 1);
    }
    assert!(files(&spool) <= 1);
}

#[test]
fn numbers_outside_the_spool_are_refused() {
    let (folder, _) = spool(0);
    let mut spool = Spool::new(folder.path().join("later"), 7);
    assert!(spool.read(8, 1).is_err());
    append(&mut spool, &records(7..9));
    assert_eq!(read(&mut spool, 7, usize::MAX), records(7..9));
    assert!(matches!(
        spool.read(6, 1),
        Err(SpoolError::Forgotten { number: 6 })
    ));
    assert!(matches!(
        spool.read(10, 1),
        Err(SpoolError::Forgotten { number: 10 })
    ));
}

#[test]
fn a_damaged_record_is_an_error() {
    let (_folder, mut spool) = spool(limits::SPOOL_SEGMENT_BYTES);
    append(&mut spool, &records(0..3));
    let segment = &spool.segments[0];
    let damage = vec![0xff; usize::try_from(segment.bytes).unwrap()];
    segment.file.write_all_at(&damage, 0).unwrap();
    assert!(matches!(spool.read(0, 100), Err(SpoolError::Read { .. })));
}
