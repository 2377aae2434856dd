//! Inspects stores that are in use, stopped, crashed or damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::crash::with_journal;
use super::world::{
    World, adopt, close, copy, delete, expected, files, key, live_of, owned, put, replace_journal,
    staged, temporary_folder,
};
use crate::file::OpenError;
use crate::look::{Look, Part, Role};
use crate::{Engine, Seq};

fn place() -> (TempDir, PathBuf) {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    (folder, root)
}

/// The files of keys in a snapshot, read in pieces.
pub(super) fn shown(look: &Look) -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        for entry in look.entries(&folder).unwrap() {
            match entry.role {
                Role::File(key) => {
                    let whole = look.get(&key).unwrap().unwrap();
                    let length = look.length(&key).unwrap().unwrap();
                    assert_eq!(length, whole.len() as u64, "{key}");
                    let from = length / 2;
                    let rest = look.piece(&key, from, whole.len()).unwrap().unwrap();
                    assert_eq!(rest, whole.slice(whole.len() / 2..), "{key}");
                    let text = String::from_utf8(whole.to_vec()).unwrap();
                    found.insert(key.as_str().to_owned(), text);
                }
                Role::Folder if folder.is_empty() => folders.push(entry.name),
                Role::Folder => folders.push(format!("{folder}/{}", entry.name)),
                // A file may be about to be replaced.
                Role::Store | Role::Leftover => {}
                Role::Foreign => panic!("{folder}/{}", entry.name),
            }
        }
    }
    found
}

/// The checkpoint and the last commit.
fn positions(look: &Look) -> (Seq, Seq) {
    let position = look.position();
    (position.checkpoint, position.last)
}

fn damaged(root: &Path) -> Vec<(Part, String)> {
    let look = Look::at(root).unwrap();
    let damage = look.damage().iter();
    damage.map(|it| (it.part, it.path.clone())).collect()
}

#[tokio::test]
async fn a_look_shows_the_same_files_as_the_next_start() {
    let (folder, root) = place();
    let mut world = World::open(&root).await.unwrap();
    let (still, crashed) = (folder.path().join("still"), folder.path().join("crashed"));
    copy(&root, &still);
    for n in 0..5 {
        world.round(n).await.unwrap();
        assert_eq!(shown(&Look::at(&root).unwrap()), expected(n + 1));
    }
    // The files of one moment with the journal of a later moment.
    copy(&root, &crashed);
    replace_journal(&crashed, &still);
    let look = Look::at(&still).unwrap();
    assert_eq!(shown(&look), expected(5));
    assert_eq!(positions(&look), (Seq(0), Seq(5)));
    let live = owned(look.live().unwrap());
    assert_eq!(live, live_of(&expected(5)));
    assert_eq!(look.live_record(&key("head.json")), Some(&*live[0].1));

    close(world.engine).unwrap();
    let look = Look::at(&root).unwrap();
    assert_eq!(shown(&look), expected(5));
    assert_eq!(positions(&look), (Seq(5), Seq(5)));
    assert_eq!(look.damage(), []);
}

#[tokio::test]
async fn a_snapshot_is_current_until_the_next_commit() {
    let (_folder, root) = place();
    let mut world = World::open(&root).await.unwrap();
    world.round(0).await.unwrap();
    let look = Look::at(&root).unwrap();
    assert!(look.is_current().unwrap());
    world.round(1).await.unwrap();
    assert!(!look.is_current().unwrap());
    let look = Look::at(&root).unwrap();
    close(world.engine).unwrap();
    assert!(!look.is_current().unwrap(), "a checkpoint was made");
}

#[tokio::test]
async fn the_owner_is_known_while_the_store_is_open() {
    let (_folder, root) = place();
    let world = World::open(&root).await.unwrap();
    assert!(Look::at(&root).unwrap().user().is_some());
    drop(world);
    assert_eq!(Look::at(&root).unwrap().user(), None);
    let nothing = root.join("tmp");
    let error = Look::at(&nothing).err().unwrap();
    assert!(matches!(error, OpenError::NotAState { root } if root == nothing));
}

#[tokio::test]
async fn a_look_finds_an_object_in_tmp_and_at_its_key() {
    let (folder, root) = place();
    let mut world = World::open(&root).await.unwrap();
    let volume = world.engine.volume();
    let name = key("deep/artifact.zip");
    // The files from before the commit with the journal of the commit.
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    let object = staged(&volume, "zip");
    let left = staged(&volume, "never adopted");
    copy(&root, &before);
    world.commit([adopt(name.as_str(), object)]).await.unwrap();
    copy(&root, &after);
    replace_journal(&after, &before);

    for root in [&before, &root] {
        let look = Look::at(root).unwrap();
        let object = look.object(&name).unwrap().unwrap();
        assert_eq!(object.size, 3);
        assert_eq!(hex(&object.sha256), SHA256_OF_ZIP);
        assert_eq!(look.get(&name).unwrap().unwrap(), "zip");
        let leftovers = look.leftovers().unwrap();
        assert_eq!(leftovers, [format!("tmp/{}", left.name().as_str())]);
        assert_eq!(look.object(&key("none.zip")).unwrap(), None);
    }
}

/// The output of `printf zip | sha256sum`.
const SHA256_OF_ZIP: &str = "4a70fe9aa6436e02c2dea340fbd1e352e4ef2d8ce6ca52ad25d4b95471fc8bf2";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn files_that_do_not_belong_to_the_store_are_distinguished() {
    let (_folder, root) = place();
    let mut world = World::open(&root).await.unwrap();
    let twice = [put("a/b.json", "b"), put("c", "c")];
    world.commit(twice).await.unwrap();
    world.commit([delete("c")]).await.unwrap();
    close(world.engine).unwrap();
    fs::write(root.join("a/b.json+new"), "").unwrap();
    fs::write(root.join("a/with space"), "").unwrap();
    std::os::unix::fs::symlink("b.json", root.join("a/link")).unwrap();
    fs::write(root.join("index/live-7+new"), "").unwrap();
    let look = Look::at(&root).unwrap();
    let roles = |folder: &str| {
        let entries = look.entries(folder).unwrap().into_iter();
        entries
            .map(|entry| (entry.name, entry.role))
            .collect::<Vec<_>>()
    };
    let inside: Vec<(String, Role)> = [
        ("b.json", Role::File(key("a/b.json"))),
        ("b.json+new", Role::Leftover),
        ("link", Role::Foreign),
        ("with space", Role::Foreign),
    ]
    .map(|(name, role)| (name.to_owned(), role))
    .into();
    assert_eq!(roles("a"), inside);
    let top = roles("");
    assert!(top.contains(&("a".to_owned(), Role::Folder)));
    assert!(top.contains(&("journal".to_owned(), Role::Store)));
    assert!(top.iter().all(|(name, _)| name != "c"), "`c` is deleted");
    assert_eq!(look.leftovers().unwrap(), ["index/live-7+new"]);
}

#[tokio::test]
async fn a_damaged_checkpoint_or_index_is_reported_and_everything_is_shown() {
    let (_folder, root) = place();
    let mut world = World::open(&root).await.unwrap();
    world.round(0).await.unwrap();
    close(world.engine).unwrap();
    assert_eq!(damaged(&root), []);

    let checkpoint = root.join("journal/CHECKPOINT");
    let before = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, "{").unwrap();
    let damage = (Part::Checkpoint, "journal/CHECKPOINT".to_owned());
    assert_eq!(damaged(&root), [damage]);
    let look = Look::at(&root).unwrap();
    assert_eq!(look.position().checkpoint, Seq(1), "the index also has it");
    assert_eq!(shown(&look), expected(1));
    fs::write(&checkpoint, before).unwrap();

    let mut index = fs::read_dir(root.join("index")).unwrap();
    let index = index.next().unwrap().unwrap();
    fs::write(index.path(), "short").unwrap();
    let name = index.file_name().into_string().unwrap();
    assert_eq!(damaged(&root), [(Part::Index, format!("index/{name}"))]);
    let look = Look::at(&root).unwrap();
    assert!(look.live().is_none());
    assert_eq!(shown(&look), expected(1));
    fs::remove_dir_all(root.join("index")).unwrap();
    assert_eq!(damaged(&root), []);
}

#[tokio::test]
async fn a_damaged_journal_is_reported_with_its_loss_and_refused_unchanged() {
    let (_folder, root) = place();
    let (segment, starts) = with_journal(&root, 3).await;
    let mut bytes = fs::read(&segment).unwrap();
    bytes[starts[1] + 50] ^= 4;
    fs::write(&segment, bytes).unwrap();
    let look = Look::at(&root).unwrap();
    let [damage] = look.damage() else {
        panic!("{:?}", look.damage());
    };
    let lost = Part::Journal {
        first: Seq(2),
        last: Seq(3),
    };
    assert_eq!((damage.part, damage.offset), (lost, starts[1] as u64));
    assert_eq!(root.join(&damage.path), segment);
    assert_eq!(shown(&look), expected(1));

    let before = files(&root);
    match World::open(&root).await.err() {
        Some(OpenError::Damaged { path, offset, .. }) => {
            assert_eq!((path, offset), (segment.clone(), starts[1] as u64));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&root), before);
    assert!(segment.exists());
}
