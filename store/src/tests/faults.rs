//! Failing disks: each operation fails in turn, and the disk is full at each possible point.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::busy::copying;
use super::world::{
    World, adopt, close, expected, files, key, names, temporary_folder, tiny, waiting_objects,
};
use crate::backup::back_up;
use crate::disk::{Action, Disk};
use crate::file::Options;
use crate::{CloseError, CommitError, Engine, Reader, Seq};

/// How an operation fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Once(io::ErrorKind),
    FromThenOn(io::ErrorKind),
}

/// A disk whose operation number `at` fails, and a flag that shows whether it did.
fn failing(at: usize, failure: Failure) -> (Disk, Arc<AtomicBool>) {
    let count = AtomicUsize::new(0);
    let failed = Arc::new(AtomicBool::new(false));
    let noted = failed.clone();
    let disk = Disk::with_hook(move |_, _| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let error = match failure {
            Failure::Once(kind) if number == at => kind,
            Failure::FromThenOn(kind) if number >= at => kind,
            Failure::Once(_) | Failure::FromThenOn(_) => return Ok(()),
        };
        noted.store(true, Ordering::SeqCst);
        Err(error.into())
    });
    (disk, failed)
}

/// Commits an object.
async fn adopt_one(world: &mut World, n: u64) -> Result<Seq, CommitError> {
    let write = || {
        let mut writer = world.engine.volume().create_object()?;
        writer.write(&[format!("object {n}").into()])?;
        writer.finish()
    };
    let object = write().map_err(|source| CommitError::Unknown { source })?;
    world.commit([adopt(&format!("objects/{n}"), object)]).await
}

/// Makes each operation of a short workload fail in turn. After each failure the store opens again with everything
/// acknowledged; the batch in flight exists completely or not at all.
async fn sweep(failure: impl Fn(io::ErrorKind) -> Failure, kind: io::ErrorKind) {
    let options = Options {
        checkpoint_bytes: 2000,
        first_segment_bytes: 6000,
        segment_bytes: 6000,
        ..tiny()
    };
    for at in 0.. {
        let folder = temporary_folder();
        let root = folder.path().join("state");
        let (disk, failed) = failing(at, failure(kind));
        let mut acknowledged = 0;
        if let Ok(mut world) = World::open_on(disk, &root, options.clone()).await {
            for n in 0..6 {
                match world.round(n).await {
                    Ok(_) => acknowledged += 1,
                    Err(_) => break,
                }
                match adopt_one(&mut world, n).await {
                    Ok(_) => acknowledged += 1,
                    Err(_) => break,
                }
            }
        }
        let world = World::open(&root)
            .await
            .unwrap_or_else(|error| panic!("{kind:?} at {at}: {error}"));
        let held = world.last.0;
        assert!(
            (acknowledged..=acknowledged + 1).contains(&held),
            "{kind:?} at {at}: {held} of {acknowledged}"
        );
        drop(world);
        let mut all_files = expected(held.div_ceil(2));
        all_files.extend((0..held / 2).map(|n| (format!("objects/{n}"), format!("object {n}"))));
        assert_eq!(files(&root), all_files, "{kind:?} at {at}");
        assert_eq!(waiting_objects(&root), Vec::<String>::new());
        if !failed.load(Ordering::SeqCst) {
            assert!(
                at > 50 && acknowledged == 12,
                "the sweep ended early, at operation {at}"
            );
            return;
        }
    }
}

#[tokio::test]
async fn any_operation_may_fail_once() {
    sweep(Failure::Once, io::ErrorKind::Other).await;
}

#[tokio::test]
async fn all_operations_may_fail_from_any_point_on() {
    sweep(Failure::FromThenOn, io::ErrorKind::Other).await;
}

#[tokio::test]
async fn the_disk_may_be_full_at_any_operation() {
    sweep(Failure::Once, io::ErrorKind::StorageFull).await;
}

/// A disk on which `action` below `place` fails with `kind` while the switch is on.
fn switched(action: Action, place: &'static str, kind: io::ErrorKind) -> (Disk, Arc<AtomicBool>) {
    let switch = Arc::new(AtomicBool::new(false));
    let on = switch.clone();
    let disk = Disk::with_hook(move |attempted, path: &Path| {
        let hit = attempted == action && path.to_string_lossy().contains(place);
        if hit && on.load(Ordering::SeqCst) {
            Err(kind.into())
        } else {
            Ok(())
        }
    });
    (disk, switch)
}

#[tokio::test]
async fn after_a_failed_sync_every_commit_is_unknown() {
    let folder = temporary_folder();
    let (disk, switch) = switched(Action::SyncFile, "journal/", io::ErrorKind::StorageFull);
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    world.round(0).await.unwrap();
    let reader = world.engine.reader();
    switch.store(true, Ordering::SeqCst);
    assert!(matches!(
        world.round(1).await,
        Err(CommitError::Unknown { .. })
    ));
    switch.store(false, Ordering::SeqCst);
    assert!(
        matches!(world.round(1).await, Err(CommitError::Unknown { .. })),
        "the sync is never tried again"
    );
    assert_eq!(
        reader.get(&key("twin")).await.unwrap().unwrap(),
        "0000000\n",
        "a change with an unknown outcome is not shown"
    );
    assert!(matches!(close(world.engine), Err(CloseError::Fault(_))));
    assert!(World::open(folder.path()).await.unwrap().last >= Seq(1));
}

#[tokio::test]
async fn a_panic_of_the_applier_ends_all_waits() {
    let folder = temporary_folder();
    let disk = Disk::with_hook(|action, path: &Path| {
        let hit = action == Action::Rename && path.ends_with("head.json");
        assert!(!hit, "on purpose");
        Ok(())
    });
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    let reader = world.engine.reader();
    world.round(0).await.unwrap();
    reader.settled().await.unwrap_err();
    assert!(matches!(
        world.round(1).await,
        Err(CommitError::Unknown { .. })
    ));
    assert!(matches!(close(world.engine), Err(CloseError::Fault(_))));
    assert_eq!(World::open(folder.path()).await.unwrap().last, Seq(1));
    assert_eq!(files(folder.path()), expected(1));
}

#[tokio::test]
async fn after_a_failed_checkpoint_every_commit_is_unknown() {
    let folder = temporary_folder();
    let (disk, switch) = switched(Action::SyncFileSystem, "", io::ErrorKind::Other);
    let options = Options {
        checkpoint_bytes: 1,
        ..tiny()
    };
    let mut world = World::open_on(disk, folder.path(), options).await.unwrap();
    switch.store(true, Ordering::SeqCst);
    let mut rounds = 0;
    let error = loop {
        match world.round(rounds).await {
            Ok(_) => rounds += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CommitError::Unknown { .. }), "{error:?}");
    drop(world);
    assert_eq!(World::open(folder.path()).await.unwrap().last, Seq(rounds));
    assert_eq!(files(folder.path()), expected(rounds));
}

#[tokio::test]
async fn a_commit_without_space_for_a_segment_is_refused_and_can_be_retried() {
    let folder = temporary_folder();
    let (disk, switch) = switched(Action::Allocate, "journal/", io::ErrorKind::StorageFull);
    let options = Options {
        spare_segments: 0,
        checkpoint_bytes: u64::MAX,
        ..tiny()
    };
    let mut world = World::open_on(disk, folder.path(), options).await.unwrap();
    switch.store(true, Ordering::SeqCst);
    let mut rounds = 0;
    let error = loop {
        match world.round(rounds).await {
            Ok(_) => rounds += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CommitError::Full), "{error:?}");
    assert!(matches!(world.round(rounds).await, Err(CommitError::Full)));
    switch.store(false, Ordering::SeqCst);
    assert_eq!(world.round(rounds).await.unwrap(), Seq(rounds + 1));
    drop(world);
    assert_eq!(files(folder.path()), expected(rounds + 1));
}

#[tokio::test]
async fn a_commit_with_too_many_open_files_waits_in_the_journal_or_is_refused() {
    let folder = temporary_folder();
    let switch = Arc::new(AtomicBool::new(false));
    let on = switch.clone();
    let disk = Disk::with_hook(move |action, _| {
        use Action::{CreateFile, ListFolder, Open, SyncFolder};
        let opens = matches!(action, CreateFile | ListFolder | Open | SyncFolder);
        match opens && on.load(Ordering::SeqCst) {
            true => Err(rustix::io::Errno::MFILE.into()),
            false => Ok(()),
        }
    });
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    let reader = world.engine.reader();
    let mut rounds = 0;
    for _ in 0..5 {
        switch.store(true, Ordering::SeqCst);
        for _ in 0..100 {
            match world.round(rounds).await {
                Ok(_) => rounds += 1,
                Err(error) => assert!(matches!(error, CommitError::Full), "{error:?}"),
            }
        }
        switch.store(false, Ordering::SeqCst);
        // The applier tries again after a pause.
        while reader.settled().await.is_err() {}
        for _ in 0..100 {
            world.round(rounds).await.unwrap();
            rounds += 1;
        }
    }
    drop(world);
    assert_eq!(files(folder.path()), expected(rounds));
}

/// Segments that are ready for use.
fn spares(root: &Path) -> usize {
    let names = names(&root.join("journal")).into_iter();
    names
        .filter(|name| name.starts_with("spare-") && !name.ends_with("+new"))
        .count()
}

#[tokio::test]
async fn spare_segments_are_used_while_the_disk_is_full() {
    let folder = temporary_folder();
    let (disk, switch) = switched(Action::Allocate, "journal/", io::ErrorKind::StorageFull);
    let options = Options {
        spare_segments: 2,
        checkpoint_bytes: u64::MAX,
        ..tiny()
    };
    let mut world = World::open_on(disk, folder.path(), options).await.unwrap();
    let mut rounds = 0;
    while spares(folder.path()) < 2 {
        world.round(rounds).await.unwrap();
        rounds += 1;
        if rounds % 100 == 0 {
            world.engine.reader().settled().await.unwrap();
        }
        assert!(rounds < 2000, "no spares were made");
    }
    switch.store(true, Ordering::SeqCst);
    // Many times the size of the spares: each checkpoint turns the previous segment into a spare.
    for n in rounds..rounds + 400 {
        world.round(n).await.unwrap();
    }
    drop(world);
    assert_eq!(files(folder.path()), expected(rounds + 400));
}

#[tokio::test]
async fn on_a_full_disk_files_wait_in_the_journal_and_are_visible() {
    let folder = temporary_folder();
    let (disk, switch) = switched(Action::Write, "twin", io::ErrorKind::StorageFull);
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    let reader = world.engine.reader();
    switch.store(true, Ordering::SeqCst);
    for n in 0..3 {
        world.round(n).await.unwrap();
        assert_eq!(
            reader.get(&key("twin")).await.unwrap().unwrap(),
            format!("{n:07}\n")
        );
    }
    assert!(!folder.path().join("twin").exists());
    assert!(matches!(close(world.engine), Err(CloseError::Unfinished)));
    let world = World::open(folder.path()).await.unwrap();
    assert_eq!(world.last, Seq(3));
    drop(world);
    assert_eq!(files(folder.path()), expected(3));
}

#[tokio::test]
async fn a_thousand_batches_wait_for_space_and_a_backup_has_them() {
    let folder = temporary_folder();
    let (root, backup) = (folder.path().join("state"), folder.path().join("backup"));
    let (disk, switch) = switched(Action::CreateFile, "twin", io::ErrorKind::StorageFull);
    let mut world = World::open_on(disk, &root, tiny()).await.unwrap();
    let reader = world.engine.reader();
    switch.store(true, Ordering::SeqCst);
    for n in 0..1000 {
        world.round(n).await.unwrap();
        let twin = reader.get(&key("twin")).await.unwrap();
        assert_eq!(twin.unwrap(), format!("{n:07}\n"));
    }
    let copied = back_up(&root, &backup, copying()).unwrap();
    assert_eq!(copied.sequence, Seq(1000));
    drop(World::open(&backup).await.unwrap());
    assert_eq!(files(&backup), expected(1000));
    assert!(!root.join("twin").exists());
    switch.store(false, Ordering::SeqCst);
    close(world.engine).unwrap();
    assert_eq!(files(&root), expected(1000));
}
