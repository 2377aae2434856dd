use std::cell::Cell;
use std::io::{Read as _, Seek as _, Write as _};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

fn key(number: usize, paths: &[&str]) -> Key {
    let checkout = Checkout {
        commit: format!("{number:040}"),
        reference: "main".to_owned(),
        paths: paths.iter().map(ToString::to_string).collect(),
    };
    Key::of(&checkout).unwrap()
}

/// The length of each tar.
const BYTES: usize = 2_000;

async fn get<'c>(cache: &'c SourceCache, key: &Key, downloads: &Cell<usize>) -> InUse<'c> {
    let download = async |mut file: File| {
        downloads.set(downloads.get() + 1);
        tokio::task::yield_now().await;
        file.write_all(&[7; BYTES])?;
        Ok::<Digest, io::Error>(Sha256::digest([7; BYTES]).into())
    };
    cache.get(key, download).await.unwrap()
}

fn names(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_key_is_the_commit_and_the_paths() {
    assert_eq!(key(1, &["a", "b"]), key(1, &["b", "a"]));
    let all = [
        key(1, &[]),
        key(2, &[]),
        key(1, &["a"]),
        key(1, &["a", "b"]),
        key(1, &["ab"]),
    ];
    let different: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    for commit in ["", "main", "../../../../../../../../../../etc/passwd"] {
        let checkout = Checkout {
            commit: commit.to_owned(),
            reference: String::new(),
            paths: Vec::new(),
        };
        Key::of(&checkout).unwrap_err();
    }
}

#[tokio::test]
async fn two_who_need_the_same_download_it_once() {
    let folder = TempDir::new().unwrap();
    let cache = SourceCache::open(folder.path().join("sources"), 20_000);
    let downloads = Cell::new(0);
    let key = key(1, &[]);
    let (one, other) = tokio::join!(get(&cache, &key, &downloads), get(&cache, &key, &downloads));
    assert_eq!(downloads.get(), 1);
    for tar in [one, other] {
        let mut content = Vec::new();
        let mut file = tar.file().unwrap();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content, vec![7; BYTES]);
        assert_eq!(tar.digest(), <Digest>::from(Sha256::digest(&content)));
    }
    let tar = get(&cache, &key, &downloads).await;
    assert!(tar.discard(), "it was there already");
    let tar = get(&cache, &key, &downloads).await;
    assert_eq!(downloads.get(), 2);
    assert!(!tar.discard(), "another one will not be better");
}

#[tokio::test]
async fn what_somebody_has_put_in_the_place_of_a_tar_is_not_used_and_not_waited_for() {
    let folder = TempDir::new().unwrap();
    let sources = folder.path().join("sources");
    let cache = SourceCache::open(sources.clone(), 20_000);
    let (downloads, key) = (Cell::new(0), key(1, &[]));
    let path = sources.join(&key.0);
    drop(get(&cache, &key, &downloads).await);
    let cut: [fn(&Path); 4] = [
        |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        },
        |path| std::fs::write(path, "").unwrap(),
        |path| {
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        },
        |path| {
            std::fs::remove_file(path).unwrap();
            rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                Mode::RUSR | Mode::WUSR,
                0,
            )
            .unwrap();
        },
    ];
    for (number, damage) in cut.iter().enumerate() {
        damage(&path);
        let tar = get(&cache, &key, &downloads).await;
        assert_eq!(downloads.get(), number + 2);
        assert_eq!(tar.file().unwrap().metadata().unwrap().len(), BYTES as u64);
    }
}

#[tokio::test]
async fn the_least_recently_used_goes_and_never_one_in_use() {
    let folder = TempDir::new().unwrap();
    let sources = folder.path().join("sources");
    let cache = SourceCache::open(sources.clone(), 5_000);
    let downloads = Cell::new(0);
    let keys: Vec<Key> = (0..4).map(|number| key(number, &[])).collect();
    drop(get(&cache, &keys[0], &downloads).await);
    drop(get(&cache, &keys[1], &downloads).await);
    drop(get(&cache, &keys[0], &downloads).await);
    drop(get(&cache, &keys[2], &downloads).await);
    assert_eq!((names(&sources), downloads.get()), (2, 3));
    let held = get(&cache, &keys[0], &downloads).await;
    assert_eq!(downloads.get(), 3, "the second was removed, not the first");
    let also_held = get(&cache, &keys[1], &downloads).await;
    let third = get(&cache, &keys[3], &downloads).await;
    assert_eq!(names(&sources), 3, "all are in use");
    drop((held, also_held, third));
    assert_eq!(names(&sources), 2);
}

#[tokio::test]
async fn what_is_half_or_of_an_earlier_process_is_not_used() {
    let folder = TempDir::new().unwrap();
    let sources = folder.path().join("sources");
    let cache = SourceCache::open(sources.clone(), 20_000);
    let failed = cache
        .get(&key(1, &[]), async |mut file: File| {
            file.write_all(b"half")?;
            Err(io::Error::other("the daemon is gone"))
        })
        .await;
    assert!(failed.is_err());
    drop(failed);
    assert_eq!(names(&sources), 0);
    let downloads = Cell::new(0);
    drop(get(&cache, &key(1, &[]), &downloads).await);
    drop(cache);
    assert_eq!(names(&sources), 1);
    drop(SourceCache::open(sources.clone(), 20_000));
    assert!(!sources.exists());
}
