//! What every engine promises to its readers: listings and pieces.

use bytes::Bytes;

use super::{Store, open};
use crate::tests::world::{append, delete, key, ops, put};
use crate::{Engine, Page, Piece, Prefix, Reader};

pub(super) async fn lists_go_backwards_in_pages<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let names = ["a", "b-c", "b/1", "b/2/x", "b/2/y", "b/3", "b.d", "c"];
    engine
        .commit(ops(epoch, names[..4].iter().map(|name| put(name, "x"))))
        .await
        .unwrap();
    engine
        .commit(ops(epoch, names[4..].iter().map(|name| put(name, "x"))))
        .await
        .unwrap();
    engine
        .commit(ops(epoch, [put("b/0", "x"), put("b/2/z", "x")]))
        .await
        .unwrap();
    engine
        .commit(ops(epoch, [delete("b/0"), delete("b/2/z")]))
        .await
        .unwrap();
    drop(engine);
    // Once from the files alone, and once with changes that may still be on their way.
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let reader = engine.reader();
    let folder = Prefix::folder("b").unwrap();
    let page = |keys: &[&str], more| Page {
        keys: keys.iter().map(|name| key(name)).collect(),
        more,
    };
    for round in 0..2 {
        let all = reader.list(&Prefix::root(), None, 100).await.unwrap();
        assert_eq!(
            all,
            page(
                &["c", "b.d", "b-c", "b/3", "b/2/y", "b/2/x", "b/1", "a"],
                false
            ),
            "round {round}"
        );
        assert_eq!(
            reader.list(&folder, None, 2).await.unwrap(),
            page(&["b/3", "b/2/y"], true)
        );
        let before = reader.list(&folder, Some(&key("b/2/y")), 2).await.unwrap();
        assert_eq!(before, page(&["b/2/x", "b/1"], false));
        assert_eq!(
            reader.list(&folder, Some(&key("b/1")), 2).await.unwrap(),
            page(&[], false)
        );
        assert_eq!(
            reader.list(&folder, None, 0).await.unwrap(),
            page(&[], true)
        );
        let none = Prefix::folder("b/1").unwrap();
        assert_eq!(reader.list(&none, None, 5).await.unwrap(), page(&[], false));
        assert_eq!(
            reader
                .list(&Prefix::folder("no/such").unwrap(), None, 5)
                .await
                .unwrap(),
            page(&[], false)
        );
        engine
            .commit(ops(
                epoch,
                [delete("b/3"), delete("b/2/x"), put("b/2/0", "x")],
            ))
            .await
            .unwrap();
        engine
            .commit(ops(
                epoch,
                [put("b/3", "x"), put("b/2/x", "x"), delete("b/2/0")],
            ))
            .await
            .unwrap();
    }
}

pub(super) async fn pieces_end_where_they_are_asked_to<S: Store>() {
    let store = S::new();
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let lines = [append("l", 0, "one\n"), append("l", 4, "two\n")];
    engine.commit(ops(epoch, lines)).await.unwrap();
    engine
        .commit(ops(epoch, [put("r.json", "record")]))
        .await
        .unwrap();
    drop(engine);
    // Once from the files alone, and once with changes that may still be on their way.
    let mut engine = store.engine();
    let (epoch, ..) = open(&mut engine).await;
    let reader = engine.reader();
    let expect = async |name: &str, before, limit, at, bytes: &str| {
        let piece = reader.piece(&key(name), before, limit).await.unwrap();
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        assert_eq!(piece, Some(Piece { at, bytes }), "{name} {before} {limit}");
    };
    expect("l", u64::MAX, 100, 0, "one\ntwo\n").await;
    expect("l", u64::MAX, 4, 4, "two\n").await;
    expect("l", 6, 4, 2, "e\ntw").await;
    expect("l", 4, 100, 0, "one\n").await;
    expect("l", 0, 100, 0, "").await;
    expect("r.json", 3, 2, 1, "ec").await;
    assert_eq!(reader.piece(&key("none"), 9, 9).await.unwrap(), None);

    for n in 2..50 {
        let next = append("l", 4 * n, "new\n");
        engine.commit(ops(epoch, [next])).await.unwrap();
        expect("l", u64::MAX, 4, 4 * n, "new\n").await;
        expect(
            "l",
            4 * n + 1,
            3,
            4 * n - 2,
            if n == 2 { "o\nn" } else { "w\nn" },
        )
        .await;
        expect("l", 6, 4, 2, "e\ntw").await;
    }
    engine.commit(ops(epoch, [delete("l")])).await.unwrap();
    assert_eq!(reader.piece(&key("l"), 9, 9).await.unwrap(), None);
    engine
        .commit(ops(epoch, [append("l", 0, "again\n")]))
        .await
        .unwrap();
    expect("l", u64::MAX, 3, 3, "in\n").await;
}
