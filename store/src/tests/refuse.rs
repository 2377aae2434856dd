//! Folders that must not be opened, and unusual folders that may be.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use super::simulated::Simulated;
use super::simulated::model::Model;
use super::world::{
    World, close, copy, expected, files, live_of, names, put, segments, temporary_folder, tiny,
    unhurried,
};
use crate::backup::{CopyError, Copying, back_up};
use crate::disk::{Action, Disk};
use crate::file::OpenError;
use crate::file::Options;
use crate::look::{Look, Part};
use crate::mend::{Loss, Mending};
use crate::segment::DATA_START;
use crate::{CommitError, Engine, Fault, FaultKind, Seq};

async fn refusal(root: &Path) -> OpenError {
    match World::open(root).await {
        Ok(_) => panic!("{} was opened", root.display()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_missing_or_empty_folder_becomes_a_private_store() {
    let folder = temporary_folder();
    let root = folder.path().join("deep/state");
    let mut world = World::open(&root).await.unwrap();
    world.commit([put("a/b", "x")]).await.unwrap();
    drop(world);
    assert_eq!(
        names(&root),
        [
            "FORMAT",
            "LOCK",
            "a",
            "index",
            "journal",
            "quarantine",
            "tmp"
        ]
    );
    for name in ["", "a", "index", "journal", "quarantine", "tmp"] {
        assert_eq!(
            fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777,
            0o700,
            "{name}"
        );
    }
    for name in ["FORMAT", "LOCK", "a/b", "journal/CHECKPOINT"] {
        assert_eq!(
            fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }
    assert!(World::open(temporary_folder().path()).await.is_ok());
}

#[tokio::test]
async fn a_folder_with_other_files_is_left_unchanged() {
    let folder = temporary_folder();
    fs::write(folder.path().join("thesis.tex"), "years").unwrap();
    let error = refusal(folder.path()).await;
    assert!(matches!(error, OpenError::NotAState { .. }), "{error}");
    assert_eq!(names(folder.path()), ["thesis.tex"]);
}

#[tokio::test]
async fn an_interrupted_first_start_can_be_continued() {
    let folder = temporary_folder();
    for name in ["journal", "tmp", "lost+found"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("LOCK"), "").unwrap();
    fs::write(folder.path().join("FORMAT+new"), "{").unwrap();
    assert!(World::open(folder.path()).await.is_ok());
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_changed() {
    let folder = temporary_folder();
    let content = r#"{"format":2,"something":"new"}"#;
    fs::write(folder.path().join("FORMAT"), content).unwrap();
    let before = fs::metadata(folder.path()).unwrap();
    let error = refusal(folder.path()).await;
    assert!(
        matches!(
            error,
            OpenError::NewerFormat {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(names(folder.path()), ["FORMAT"]);
    let after = fs::metadata(folder.path()).unwrap();
    assert_eq!(
        (before.mtime(), before.mtime_nsec()),
        (after.mtime(), after.mtime_nsec())
    );
}

#[tokio::test]
async fn a_store_in_use_names_its_owner() {
    let folder = temporary_folder();
    let mut first = World::open(folder.path()).await.unwrap();
    let error = refusal(folder.path()).await;
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    assert!(matches!(error, OpenError::Locked { .. }));
    first.commit([put("a", "x")]).await.unwrap();
    drop(first);
    assert!(World::open(folder.path()).await.is_ok());
}

#[tokio::test]
async fn a_missing_or_unreadable_format_is_damage() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    world.commit([put("a", "x")]).await.unwrap();
    let copied = temporary_folder();
    copy(root, copied.path());
    // Removes all files but those of the engine, as if nothing had been applied to the tree.
    for name in files(copied.path()).keys() {
        fs::remove_file(copied.path().join(name)).unwrap();
    }
    for change in ["", "{}", "no json"] {
        fs::write(copied.path().join("FORMAT"), change).unwrap();
        let error = refusal(copied.path()).await;
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{change}: {error}"
        );
    }
    fs::remove_file(copied.path().join("FORMAT")).unwrap();
    let error = refusal(copied.path()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_eq!(files(copied.path()).len(), 0);
}

#[tokio::test]
async fn a_segment_of_another_store_is_damage() {
    let (one, other) = (temporary_folder(), temporary_folder());
    let mut first = World::open(one.path()).await.unwrap();
    first.commit([put("a", "x")]).await.unwrap();
    drop(World::open(other.path()).await.unwrap());
    for segment in segments(one.path()) {
        let name = segment.file_name().unwrap();
        fs::copy(&segment, other.path().join("journal").join(name)).unwrap();
    }
    let error = refusal(other.path()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_network_file_system_is_refused_unchanged_unless_allowed() {
    let simulated = Simulated::new(Model::new());
    simulated.move_to_network("NFS");
    let open = async |options| {
        let disk = Disk::on(Arc::new(simulated.clone()));
        World::open_on(disk, Path::new("/deep/state"), options).await
    };
    let error = open(tiny()).await.err().unwrap();
    assert!(matches!(error, OpenError::Network { .. }), "{error}");
    assert!(error.to_string().contains("/deep/state") && error.to_string().contains("NFS"));
    assert_eq!(simulated.now(), 0);
    let allowed = Options {
        allow_network: true,
        ..tiny()
    };
    assert!(open(allowed).await.is_ok());
}

#[tokio::test]
async fn the_error_names_a_read_only_file_system() {
    let folder = temporary_folder();
    drop(World::open(folder.path()).await.unwrap());
    let disk = Disk::with_hook(|action, _| match action {
        Action::Inspect | Action::ListFolder | Action::Open | Action::Read => Ok(()),
        _ => Err(ErrorKind::ReadOnlyFilesystem.into()),
    });
    let error = World::open_on(disk, folder.path(), tiny()).await.err();
    let error = error.unwrap();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
    assert!(
        error.to_string().contains("LOCK cannot be written"),
        "{error}"
    );
}

#[tokio::test]
async fn a_lost_checkpoint_is_rebuilt_from_the_index_or_is_damage() {
    let folder = temporary_folder();
    let (root, cut) = (folder.path().join("state"), folder.path().join("cut"));
    let mut world = World::open(&root).await.unwrap();
    world.round(0).await.unwrap();
    let pending = world.engine.reader().pending;
    pending.wait_for_checkpoint().unwrap();
    world.round(1).await.unwrap();
    copy(&root, &cut);
    fs::remove_file(cut.join("journal/CHECKPOINT")).unwrap();
    let without_index = folder.path().join("without index");
    copy(&cut, &without_index);

    let opened = World::open(&cut).await.unwrap();
    assert_eq!(opened.last, Seq(2));
    drop(opened);
    assert_eq!(files(&cut), expected(2));

    fs::remove_dir_all(without_index.join("index")).unwrap();
    let before = files(&without_index);
    let error = refusal(&without_index).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("CHECKPOINT"), "{error}");
    assert_eq!(files(&without_index), before);
}

/// A store with three segments that was killed after `rounds` rounds, while it wrote the last segment.
async fn killed(root: &Path) -> u64 {
    let live = root.with_extension("live");
    let opened = World::open_on(Disk::new(), &live, unhurried()).await;
    let mut world = opened.unwrap();
    let mut rounds = 0;
    while segments(&live).len() < 3 {
        world.round(rounds).await.unwrap();
        rounds += 1;
    }
    world.engine.reader().pending.wait_for_tree().unwrap();
    copy(&live, root);
    rounds
}

#[tokio::test]
async fn a_missing_or_short_segment_is_refused_until_the_loss_is_accepted() {
    type Damage = Box<dyn Fn(&Path)>;
    let folder = temporary_folder();
    let pristine = folder.path().join("pristine");
    let rounds = killed(&pristine).await;
    let cut_to = |path: &Path, length: u64| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(length).unwrap();
    };
    let mut damages: Vec<(String, Damage)> = vec![
        (
            "all segments are gone".to_owned(),
            Box::new(|root| {
                let gone = segments(root).into_iter();
                gone.for_each(|path| fs::remove_file(path).unwrap());
            }),
        ),
        (
            "the journal is gone".to_owned(),
            Box::new(|root| fs::remove_dir_all(root.join("journal")).unwrap()),
        ),
    ];
    for at in 0..3 {
        let remove = move |root: &Path| fs::remove_file(&segments(root)[at]).unwrap();
        damages.push((format!("segment {at} is gone"), Box::new(remove)));
        let length = fs::metadata(&segments(&pristine)[at]).unwrap().len();
        for left in [length - 1, length / 2, DATA_START as u64, 100, 0] {
            let cut = move |root: &Path| cut_to(&segments(root)[at], left);
            let what = format!("segment {at} has {left} bytes of {length}");
            damages.push((what, Box::new(cut)));
        }
    }
    for (number, (what, damage)) in damages.iter().enumerate() {
        let root = folder.path().join(number.to_string());
        copy(&pristine, &root);
        damage(&root);
        let before = files(&root);
        let error = refusal(&root).await;
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{what}: {error}"
        );
        assert!(error.to_string().contains("fsck"), "{what}: {error}");
        assert_eq!(files(&root), before, "{what}");
        let look = Look::at(&root).unwrap();
        let is_journal = |damage: &crate::look::Damage| matches!(damage.part, Part::Journal { .. });
        assert!(look.damage().iter().any(is_journal), "{what}");

        let mending = Mending::begin(&root).unwrap();
        mending.mend_checkpoint().unwrap();
        assert!(mending.accept_loss().unwrap().is_some(), "{what}");
        drop(mending);
        let mut world = World::open(&root).await.unwrap();
        // The live set has every live record of the files.
        assert_eq!(world.records, live_of(&files(&root)), "{what}");
        world.commit([put("after", "x")]).await.unwrap();
        drop(world);
        assert!(World::open(&root).await.is_ok(), "{what}");
    }
    assert_eq!(World::open(&pristine).await.unwrap().last, Seq(rounds));
}

/// A torn last record was never acknowledged; a damaged one was, if its commit was applied.
#[tokio::test]
async fn damage_in_the_last_record_is_refused_if_the_record_was_applied() {
    let folder = temporary_folder();
    let live = folder.path().join("live");
    let opened = World::open_on(Disk::new(), &live, unhurried()).await;
    let mut world = opened.unwrap();
    let mut begin = 0;
    for n in 0..3 {
        begin = written(&segments(&live)[0]);
        world.round(n).await.unwrap();
    }
    world.engine.reader().pending.wait_for_tree().unwrap();
    let pristine = folder.path().join("pristine");
    copy(&live, &pristine);
    let end = written(&segments(&pristine)[0]);

    type Damage = Box<dyn Fn(&mut [u8])>;
    let flip = |at: usize| -> Damage { Box::new(move |bytes| bytes[at] ^= 4) };
    let zero: Damage = Box::new(move |bytes| bytes[begin..end].fill(0));
    let flips = (begin..end).step_by(40).map(flip);
    for (number, damage) in flips.chain([zero]).enumerate() {
        let root = folder.path().join(number.to_string());
        copy(&pristine, &root);
        let segment = segments(&root).remove(0);
        let mut bytes = fs::read(&segment).unwrap();
        damage(&mut bytes);
        fs::write(&segment, bytes).unwrap();
        let cut = root.with_extension("cut");
        copy(&root, &cut);

        let error = refusal(&root).await;
        let what = error.to_string();
        assert!(what.contains("record 3 was applied"), "{number}: {what}");
        let (first, last) = (Seq(3), Seq(3));
        let look = Look::at(&root).unwrap();
        assert_eq!(look.damage()[0].part, Part::Journal { first, last });
        let copying = Copying {
            leave_out: &|_| false,
            counts_on: &|_| None,
            is_stopped: &|| false,
        };
        let backup = back_up(&root, &root.with_extension("backup"), copying);
        assert!(matches!(backup, Err(CopyError::Open(_))), "{backup:?}");
        let mending = Mending::begin(&root).unwrap();
        let (loss, _) = mending.accept_loss().unwrap().unwrap();
        assert_eq!(loss, Loss { first, last });
        drop(mending);
        assert!(World::open(&root).await.unwrap().last > last);

        // A power cut may leave an older number. Then the last record looks unfinished.
        fs::remove_file(cut.join("journal/APPLIED")).unwrap();
        assert_eq!(World::open(&cut).await.unwrap().last, Seq(2));
    }
}

/// The end of the last record of a segment, without zeros at its end.
fn written(segment: &Path) -> usize {
    let bytes = fs::read(segment).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// Why a commit was not acknowledged.
fn source(result: Result<Seq, CommitError>) -> Fault {
    match result {
        Err(CommitError::Unknown { source }) => source,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_commit_is_acknowledged_after_the_lock_was_removed_or_replaced() {
    for is_replaced in [false, true] {
        let folder = temporary_folder();
        let root = folder.path();
        let mut first = World::open(root).await.unwrap();
        first.round(0).await.unwrap();
        fs::remove_file(root.join("LOCK")).unwrap();
        let second = match is_replaced {
            true => Some(World::open(root).await.unwrap()),
            false => None,
        };
        let error = source(first.round(1).await);
        assert_eq!(error.kind(), FaultKind::PulledAway);
        assert!(error.to_string().ends_with("/LOCK"), "{error}");
        assert_eq!(source(first.round(1).await).kind(), FaultKind::PulledAway);
        assert!(close(first.engine).is_err(), "a close writes nothing");
        let Some(mut second) = second else {
            continue;
        };
        assert_eq!(second.last, Seq(1));
        second.round(1).await.unwrap();
        close(second.engine).unwrap();
        assert_eq!(files(root), expected(2));
        assert_eq!(World::open(root).await.unwrap().last, Seq(2));
    }
}

#[tokio::test]
async fn no_commit_is_acknowledged_after_the_segment_lost_its_name() {
    type Loss = fn(&Path);
    let losses: [Loss; 4] = [
        |root| fs::remove_file(&segments(root)[0]).unwrap(),
        |root| fs::remove_dir_all(root.join("journal")).unwrap(),
        |root| fs::rename(root.join("journal"), root.join("elsewhere")).unwrap(),
        |root| {
            let segment = &segments(root)[0];
            let content = fs::read(segment).unwrap();
            fs::remove_file(segment).unwrap();
            fs::write(segment, content).unwrap();
        },
    ];
    for loss in losses {
        let folder = temporary_folder();
        let root = folder.path().join("state");
        let mut world = World::open(&root).await.unwrap();
        world.round(0).await.unwrap();
        loss(&root);
        assert_eq!(source(world.round(1).await).kind(), FaultKind::PulledAway);
        assert_eq!(source(world.round(1).await).kind(), FaultKind::PulledAway);
    }
}

#[tokio::test]
async fn a_store_whose_lock_was_replaced_makes_no_checkpoint() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    world.round(0).await.unwrap();
    let mark = fs::read(root.join("journal/CHECKPOINT")).unwrap();
    // Another process could hold the lock of the new file.
    fs::remove_file(root.join("LOCK")).unwrap();
    fs::write(root.join("LOCK"), "").unwrap();
    let pending = world.engine.reader().pending;
    assert!(pending.wait_for_checkpoint().is_err());
    let refused = world.round(1).await;
    assert!(matches!(refused, Err(CommitError::Unknown { .. })));
    assert!(close(world.engine).is_err());
    assert_eq!(fs::read(root.join("journal/CHECKPOINT")).unwrap(), mark);
    assert_eq!(World::open(root).await.unwrap().last, Seq(1));
}
