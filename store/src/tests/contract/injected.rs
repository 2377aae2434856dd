//! The failures that the engine in memory plays on demand.

use super::{open, text};
use crate::memory::{Fault, MemoryStore};
use crate::tests::world::{ops, put};
use crate::{CommitError, Compacted, Engine, Reader, Seq};

#[tokio::test]
async fn each_fault_is_answered_once_and_keeps_its_word() {
    let store = MemoryStore::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    for fault in [
        Fault::Fenced,
        Fault::TooLarge,
        Fault::Full,
        Fault::Unknown { stored: true },
    ] {
        store.inject(fault);
    }
    let mut results = Vec::new();
    for n in 0..5 {
        results.push(engine.commit(ops(epoch, [put("a", &n.to_string())])).await);
    }
    assert!(matches!(results[0], Err(CommitError::Fenced { .. })));
    assert!(matches!(results[1], Err(CommitError::TooLarge { .. })));
    assert!(matches!(results[2], Err(CommitError::Full { .. })));
    assert!(matches!(results[3], Err(CommitError::Unknown { .. })));
    assert!(
        matches!(results[4], Err(CommitError::Unknown { .. })),
        "until it is opened again"
    );
    let (epoch, last, _) = open(&mut engine).await;
    assert_eq!(last, Seq(1));
    assert_eq!(text(&engine.reader(), "a").await.unwrap(), "3");
    store.inject(Fault::Unknown { stored: false });
    assert!(engine.commit(ops(epoch, [put("a", "lost")])).await.is_err());
    assert_eq!(open(&mut engine).await.1, Seq(1));
}

#[tokio::test]
async fn a_second_engine_fences_the_first() {
    let store = MemoryStore::new();
    let (mut first, mut second) = (store.engine(), store.engine());
    let (epoch, ..) = open(&mut first).await;
    open(&mut second).await;
    let result = first.commit(ops(epoch, [put("a", "x")])).await;
    assert!(matches!(result, Err(CommitError::Fenced { .. })));
}

#[tokio::test]
async fn a_compacted_feed_tells_its_watchers() {
    let store = MemoryStore::new();
    let mut engine = store.engine();
    let (epoch, last, _) = open(&mut engine).await;
    let mut changes = engine.reader().watch(last).unwrap();
    engine.commit(ops(epoch, [put("a", "x")])).await.unwrap();
    store.compact_feed();
    assert_eq!(
        changes.next().await,
        Err(Compacted {
            from: Seq(0),
            oldest: Seq(1)
        })
    );
}
