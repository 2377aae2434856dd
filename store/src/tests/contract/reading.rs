//! The promises of every engine to its readers: names, contents, pieces.

use bytes::Bytes;

use super::{Opened, Store};
use crate::tests::world::{append, delete, key, put};
use crate::{Engine, Piece, Prefix, Reader};

pub(super) async fn children_are_listed_in_order<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let names = ["a", "b-c", "b/1", "b/2/x", "b/2/y", "b/3", "b.d", "c/1/2/3"];
    let all = names.iter().map(|name| put(name, "x"));
    opened.commit(all).await.unwrap();
    // First only from the files, then with changes that may still be pending.
    opened = opened.reopen().await;
    let reader = opened.engine.reader();
    let children = async |folder: &str| match folder {
        "" => reader.children(&Prefix::root()).await.unwrap(),
        folder => {
            let folder = Prefix::folder(folder).unwrap();
            reader.children(&folder).await.unwrap()
        }
    };
    for round in 0..20 {
        assert_eq!(children("").await, ["a", "b", "b-c", "b.d", "c"], "{round}");
        assert_eq!(children("b").await, ["1", "2", "3"], "round {round}");
        assert_eq!(children("b/2").await, ["x", "y"], "round {round}");
        assert_eq!(children("c").await, ["1"], "round {round}");
        assert_eq!(children("b/1").await, [""; 0], "a file has no children");
        assert_eq!(children("no/such").await, [""; 0]);
        let changes = [
            delete("b/3"),
            delete("b/2/x"),
            delete("c/1/2/3"),
            put("b/0/new", "x"),
            put("b/2/z", "x"),
        ];
        opened.commit(changes).await.unwrap();
        assert_eq!(children("").await, ["a", "b", "b-c", "b.d"], "{round}");
        assert_eq!(children("b").await, ["0", "1", "2"], "round {round}");
        assert_eq!(children("b/2").await, ["y", "z"], "round {round}");
        assert_eq!(children("c").await, [""; 0], "round {round}");
        let back = [
            put("b/3", "x"),
            put("b/2/x", "x"),
            put("c/1/2/3", "x"),
            delete("b/0/new"),
            delete("b/2/z"),
        ];
        opened.commit(back).await.unwrap();
    }
}

pub(super) async fn many_files_are_read_in_the_order_of_their_keys<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let names: Vec<String> = (0..100).map(|n| format!("many/{n}")).collect();
    let all = names.iter().map(|name| put(name, &name.repeat(2)));
    opened.commit(all).await.unwrap();
    let reader = opened.engine.reader();
    for round in 0..2 {
        let keys: Vec<_> = names.iter().rev().map(|name| key(name)).collect();
        let contents = reader.get_many(keys.clone()).await.unwrap();
        let lengths = reader.lengths(keys).await.unwrap();
        for ((name, content), length) in names.iter().rev().zip(contents).zip(lengths) {
            let is_there = round == 0 || name != "many/7";
            let expected = is_there.then(|| Bytes::from(name.repeat(2)));
            assert_eq!(
                length.unwrap(),
                expected.as_ref().map(|bytes| bytes.len() as u64)
            );
            assert_eq!(content, expected);
        }
        let gone = [delete("many/7")];
        opened.commit(gone).await.unwrap();
    }
    assert_eq!(reader.get_many(Vec::new()).await.unwrap(), [None; 0]);
}

pub(super) async fn pieces_end_at_the_requested_byte<S: Store>() {
    let mut opened = Opened::<S>::fresh().await;
    let lines = [append("l", 0, "one\n"), append("l", 4, "two\n")];
    opened.commit(lines).await.unwrap();
    opened.commit([put("r.json", "record")]).await.unwrap();
    // First only from the files, then with changes that may still be pending.
    opened = opened.reopen().await;
    let reader = opened.engine.reader();
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
        opened.commit([next]).await.unwrap();
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
    opened.commit([delete("l")]).await.unwrap();
    assert_eq!(reader.piece(&key("l"), 9, 9).await.unwrap(), None);
    opened.commit([append("l", 0, "again\n")]).await.unwrap();
    expect("l", u64::MAX, 3, 3, "in\n").await;
}
