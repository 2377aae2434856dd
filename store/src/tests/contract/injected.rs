//! The failures that the engine in memory plays on demand.

use super::{open, text};
use crate::memory::{Injected, MemoryStore};
use crate::tests::world::{ops, put};
use crate::{CommitError, Engine, Seq};

#[tokio::test]
async fn a_batch_that_is_refused_may_be_tried_again() {
    let store = MemoryStore::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let batch = || ops(epoch, [put("a", "x")]);
    store.inject(Injected::TooLarge);
    store.inject(Injected::Full);
    let refused = engine.commit(batch()).await;
    assert!(matches!(refused, Err(CommitError::TooLarge { .. })));
    let refused = engine.commit(batch()).await;
    assert!(matches!(refused, Err(CommitError::Full)));
    assert_eq!(text(&engine.reader(), "a").await, None);
    assert_eq!(engine.commit(batch()).await.unwrap(), Seq(1));
}

#[tokio::test]
async fn a_fenced_engine_is_fenced_until_it_is_opened_again() {
    let store = MemoryStore::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    store.inject(Injected::Fenced);
    for _ in 0..2 {
        let result = engine.commit(ops(epoch, [put("a", "x")])).await;
        assert!(
            matches!(result, Err(CommitError::Fenced { batch, current }) if batch == epoch && current > epoch)
        );
    }
    assert_eq!(text(&engine.reader(), "a").await, None);
    let (epoch, last, _) = open(&mut engine).await;
    assert_eq!(last, Seq(0));
    let again = engine.commit(ops(epoch, [put("a", "x")])).await;
    assert_eq!(again.unwrap(), Seq(1));
}

#[tokio::test]
async fn an_unknown_outcome_is_unknown_until_the_store_is_opened_again() {
    for stored in [true, false] {
        let store = MemoryStore::new();
        let mut engine = store.engine();
        let (epoch, ..) = open(&mut engine).await;
        store.inject(Injected::Unknown { stored });
        for _ in 0..2 {
            let result = engine.commit(ops(epoch, [put("a", "x")])).await;
            assert!(matches!(result, Err(CommitError::Unknown { .. })));
        }
        let (_, last, _) = open(&mut engine).await;
        assert_eq!(last, Seq(u64::from(stored)));
        let found = text(&engine.reader(), "a").await;
        assert_eq!(found.is_some(), stored);
    }
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
async fn a_restored_store_is_one_until_that_is_settled() {
    let store = MemoryStore::new();
    store.set_restored();
    let mut engine = store.engine();
    open(&mut engine).await;
    assert!(engine.is_restored());
    engine.volume().forget_restored().unwrap();
    open(&mut engine).await;
    assert!(!engine.is_restored());
}
