//! Crashes and damage: everything acknowledged is complete afterwards, or the store refuses to open.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::world::{
    World, append, close, copy, delete, expected, files, key, live, live_of, put, replace_journal,
    segments, temporary_folder, tiny, unhurried,
};
use crate::disk::{Action, Disk};
use crate::file::{FileReader, OpenError, Options};
use crate::{Engine, Reader, Seq};

/// Opens a store and checks that it holds exactly the rounds before `rounds`.
async fn assert_holds(root: &Path, rounds: u64) {
    let world = World::open(root).await.unwrap();
    assert_eq!(world.last, Seq(rounds));
    assert_eq!(world.records, live_of(&expected(rounds)));
    close(world.engine).unwrap();
    assert_eq!(files(root), expected(rounds));
}

#[tokio::test]
async fn concurrent_readers_see_whole_batches() {
    let folder = temporary_folder();
    let options = Options {
        gather: Duration::from_millis(1),
        ..tiny()
    };
    let opened = World::open_on(Disk::new(), folder.path(), options).await;
    let mut world = opened.unwrap();
    let reader = world.engine.reader();
    world.round(0).await.unwrap();
    let (done, reads) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (end, counter): (_, Arc<AtomicUsize>) = (done.clone(), Arc::clone(&reads));
    let reading = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let get = |name| runtime.block_on(reader.get(&key(name))).unwrap().unwrap();
        let mut seen = 0;
        while !end.load(Ordering::SeqCst) {
            let log = get("log.jsonl");
            let lines = log.len() / 8;
            assert_eq!(
                log,
                (0..lines).map(|n| format!("{n:07}\n")).collect::<String>()
            );
            assert!(lines >= seen, "{lines} lines after {seen}");
            // This file is read later, so it is at least as new.
            let twin: usize = std::str::from_utf8(&get("twin"))
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            assert!(twin + 1 >= lines);
            seen = lines;
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    // On a busy machine the reader may begin late.
    let mut n = 1;
    while n < 400 || (reads.load(Ordering::SeqCst) == 0 && !reading.is_finished()) {
        world.round(n).await.unwrap();
        n += 1;
    }
    done.store(true, Ordering::SeqCst);
    reading.join().unwrap();
}

#[tokio::test]
async fn a_checkpoint_is_made_after_its_interval() {
    let folder = temporary_folder();
    let root = folder.path();
    let options = Options {
        checkpoint_interval: Duration::from_millis(1),
        ..unhurried()
    };
    let mut world = World::open_on(Disk::new(), root, options).await.unwrap();
    world.round(0).await.unwrap();
    let index = root.join("index/live-00000000000000000001");
    let begun = Instant::now();
    while !index.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no checkpoint was made"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn a_truncated_ledger_stays_readable_and_does_not_stop_the_store() {
    let folder = temporary_folder();
    let (root, cut) = (folder.path().join("state"), folder.path().join("cut"));
    let mut world = World::open(&root).await.unwrap();
    world.commit([append("l", 0, "first\n")]).await.unwrap();
    close(world.engine).unwrap();
    let mut world = World::open_on(Disk::new(), &root, unhurried())
        .await
        .unwrap();
    copy(&root, &cut);
    world.commit([append("l", 6, "second\n")]).await.unwrap();
    world.commit([append("l", 13, "third\n")]).await.unwrap();
    replace_journal(&root, &cut);
    fs::write(cut.join("l"), "fir").unwrap();
    let world = World::open(&cut).await.unwrap();
    assert_eq!(world.last, Seq(3));
    close(world.engine).unwrap();
    assert_eq!(files(&cut)["l"], "fir", "the file has no hole");
}

#[tokio::test]
async fn changes_are_visible_only_when_durable() {
    let folder = temporary_folder();
    let root = folder.path().to_owned();
    let reader: Arc<OnceLock<FileReader>> = Arc::default();
    let looks = Arc::new(AtomicUsize::new(0));
    let disk = Disk::new().hooked({
        let (reader, looks) = (reader.clone(), looks.clone());
        move |action, path| {
            let is_record = matches!(action, Action::Write | Action::SyncFile)
                && path.extension().is_some_and(|suffix| suffix == "jnl");
            if let Some(reader) = reader.get().filter(|_| is_record) {
                let twin = key("twin");
                let found = reader.content(&twin);
                assert!(matches!(found, Ok(None)), "before {action:?}");
                assert!(!root.join("twin").exists());
                looks.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }
    });
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    assert!(reader.set(world.engine.reader()).is_ok());
    world.round(0).await.unwrap();
    assert_eq!(
        looks.load(Ordering::SeqCst),
        2,
        "checked before the write and before the sync"
    );
}

#[tokio::test]
async fn after_a_clean_close_the_files_hold_the_whole_state() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    for n in 0..5 {
        world.round(n).await.unwrap();
    }
    close(world.engine).unwrap();
    assert_eq!(segments(root), Vec::<std::path::PathBuf>::new());
    assert_eq!(files(root), expected(5));
    assert_eq!(fs::read_dir(root.join("index")).unwrap().count(), 1);
    let checkpoint = root.join("journal/CHECKPOINT");
    let mark = fs::read(&checkpoint).unwrap();
    fs::remove_dir_all(root.join("journal")).unwrap();
    fs::create_dir(root.join("journal")).unwrap();
    fs::write(&checkpoint, mark).unwrap();
    assert_holds(root, 5).await;
}

#[tokio::test]
async fn a_lost_index_is_rebuilt() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    for n in 0..6 {
        world.round(n).await.unwrap();
    }
    drop(world);
    fs::remove_dir_all(root.join("index")).unwrap();
    fs::write(root.join("jobs/foreign+name.json"), r#"{"live":true}"#).unwrap();
    let world = World::open(root).await.unwrap();
    assert_eq!(world.records, live_of(&expected(6)));
}

#[tokio::test]
async fn every_start_reports_a_damaged_record_until_it_is_changed() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    let settled = put("settled.json", r#"{"live":false}"#);
    let batch = [live("good.json", 1), live("bad.json", 1), settled];
    world.commit(batch).await.unwrap();
    close(world.engine).unwrap();
    fs::write(root.join("bad.json"), "{\"live\":tr").unwrap();
    fs::remove_dir_all(root.join("index")).unwrap();
    for _ in 0..2 {
        let world = World::open(root).await.unwrap();
        let names = world.records.iter().map(|(key, _)| key.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["bad.json", "good.json"]);
        assert_eq!(world.records[0].1, "{\"live\":tr");
    }
    let mut world = World::open(root).await.unwrap();
    world.commit([delete("bad.json")]).await.unwrap();
    close(world.engine).unwrap();
    assert_eq!(World::open(root).await.unwrap().records.len(), 1);
}

/// A stopped store with `rounds` rounds in its journal, its last segment, and the offset of each record of that segment.
pub(super) async fn with_journal(root: &Path, rounds: u64) -> (std::path::PathBuf, Vec<usize>) {
    let live = root.with_extension("live");
    let mut world = World::open_on(Disk::new(), &live, unhurried())
        .await
        .unwrap();
    copy(&live, root);
    for n in 0..rounds {
        world.round(n).await.unwrap();
    }
    replace_journal(&live, root);
    let path = segments(root).pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    let mut starts = vec![crate::segment::DATA_START];
    for _ in 0..rounds {
        let at = starts[starts.len() - 1];
        let payload = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        starts.push(at + crate::record::HEADER_BYTES + payload as usize);
    }
    (path, starts)
}

#[tokio::test]
async fn a_journal_that_ends_before_the_index_is_damage() {
    let folder = temporary_folder();
    let (root, old) = (folder.path().join("state"), folder.path().join("old"));
    let mut world = World::open(&root).await.unwrap();
    world.round(0).await.unwrap();
    copy(&root, &old);
    world.round(1).await.unwrap();
    close(world.engine).unwrap();
    replace_journal(&old, &root);
    let error = World::open(&root).await.err();
    assert!(
        matches!(error, Some(OpenError::Damaged { .. })),
        "{error:?}"
    );
}
