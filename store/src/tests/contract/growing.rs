//! The promises of every engine about growing files.

use super::super::world::{append, delete, key};
use super::{Opened, Store};
use crate::{CommitError, Engine, InvalidBatch, Reader};

pub(super) async fn a_growing_file_continues_at_its_end_after_reopening<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let (volume, log) = (opened.engine.volume(), key("jobs/1/log.jsonl"));
    assert!(volume.read_growing(&log).unwrap().is_none());
    let mut file = volume.open_growing(&log).unwrap();
    assert_eq!(file.size(), 0);
    assert_eq!(file.append(b"one\n").unwrap(), 0);
    assert_eq!(file.append(b"two\n").unwrap(), 4);
    file.sync().unwrap();
    drop(file);
    opened = opened.reopen().await;
    let volume = opened.engine.volume();
    let mut file = volume.open_growing(&log).unwrap();
    let reader = volume.read_growing(&log).unwrap().unwrap();
    assert_eq!(file.append(b"three").unwrap(), 8);
    assert_eq!((file.size(), reader.size().unwrap()), (13, 13));
    assert_eq!(reader.read_at(4, 6).unwrap(), b"two\nth");
    assert_eq!(reader.read_at(8, 100).unwrap(), b"three");
    assert_eq!(reader.read_at(13, 100).unwrap(), b"");
    assert_eq!(reader.read_at(99, 100).unwrap(), b"");
}

pub(super) async fn a_torn_end_is_cut_off<S: Store>() {
    let opened = Opened::<S>::fresh().await;
    let (volume, log) = (opened.engine.volume(), key("log"));
    let mut file = volume.open_growing(&log).unwrap();
    file.append(b"whole\ntorn").unwrap();
    file.cut(6).unwrap();
    file.cut(99).unwrap();
    assert_eq!(file.append(b"next\n").unwrap(), 6);
    file.sync().unwrap();
    let content = volume.read_growing(&log).unwrap().unwrap().read_at(0, 99);
    assert_eq!(content.unwrap(), b"whole\nnext\n");
}

/// A batch has the last bytes, whether they are already in the file or not. It leaves no gap.
pub(super) async fn a_batch_may_end_a_growing_file<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let (volume, reader) = (opened.engine.volume(), opened.engine.reader());
    let mut file = volume.open_growing(&key("log")).unwrap();
    file.append(b"one\ntwo\n").unwrap();
    drop(file);
    let gap = opened.commit([append("log", 9, "x")]).await;
    let expected = InvalidBatch::Gap {
        key: key("log"),
        at: 9,
        length: 8,
    };
    assert!(matches!(gap, Err(CommitError::Invalid(found)) if found == expected));
    let end = append("log", 4, "two\nthree\n");
    opened.commit([end]).await.unwrap();
    assert_eq!(opened.text("log").await.unwrap(), "one\ntwo\nthree\n");
    reader.settled().await.unwrap();
    let content = volume.read_growing(&key("log")).unwrap().unwrap();
    assert_eq!(content.read_at(4, 99).unwrap(), b"two\nthree\n");
    opened.commit([delete("log")]).await.unwrap();
    reader.settled().await.unwrap();
    assert!(volume.read_growing(&key("log")).unwrap().is_none());
}
