//! Objects and the batches that adopt them, through crashes and failing disks.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::world::{
    World, adopt, close, copy, files, key, put, replace_journal, staged, temporary_folder, tiny,
    unhurried, waiting_objects,
};
use crate::disk::{Action, Disk};
use crate::volume::Volume;
use crate::{Engine, Key, Reader, Seq};

fn read(volume: &Arc<dyn Volume>, key: &Key) -> Option<String> {
    let file = volume.open_object(key).unwrap()?;
    Some(String::from_utf8(file.read_at(0, usize::MAX).unwrap()).unwrap())
}

#[tokio::test]
async fn an_object_on_a_full_disk_leaves_no_file() {
    let folder = temporary_folder();
    let writes = AtomicUsize::new(0);
    let disk = Disk::with_hook(move |action, path: &Path| {
        let of_object =
            action == Action::Write && path.parent().is_some_and(|tmp| tmp.ends_with("tmp"));
        if of_object && writes.fetch_add(1, Ordering::SeqCst) == 1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    let world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    let mut writer = world.engine.volume().create_object().unwrap();
    writer.write(&["fits".into()]).unwrap();
    assert!(writer.write(&["does not".into()]).unwrap_err().is_full());
    drop(writer);
    assert_eq!(waiting_objects(folder.path()), [""; 0]);
    let object = staged(&world.engine.volume(), "later there is room");
    assert_eq!(object.size(), 19);
}

#[tokio::test]
async fn an_adopted_object_is_readable_before_it_moves_to_its_key() {
    let folder = temporary_folder();
    let is_full = Arc::new(AtomicBool::new(true));
    let full = is_full.clone();
    let disk = Disk::with_hook(move |action, path: &Path| {
        let is_key = path.ends_with("a.zip");
        if action == Action::Rename && is_key && full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
    let objects = world.engine.volume();
    let object = staged(&objects, "zip");
    assert_eq!(read(&objects, &key("a.zip")), None);
    world.commit([adopt("a.zip", object)]).await.unwrap();
    assert_eq!(read(&objects, &key("a.zip")).unwrap(), "zip");
    let reader = world.engine.reader();
    assert_eq!(reader.get(&key("a.zip")).await.unwrap().unwrap(), "zip");
    assert_eq!(waiting_objects(folder.path()).len(), 1);
    is_full.store(false, Ordering::SeqCst);
    close(world.engine).unwrap();
    assert_eq!(files(folder.path())["a.zip"], "zip");
}

#[tokio::test]
async fn an_object_removed_by_hand_does_not_stop_the_store() {
    let folder = temporary_folder();
    let (root, cut) = (folder.path().join("state"), folder.path().join("cut"));
    let mut world = World::open_on(Disk::new(), &root, unhurried())
        .await
        .unwrap();
    let object = staged(&world.engine.volume(), "gone");
    copy(&root, &cut);
    world
        .commit([adopt("a.zip", object), put("job", "names a.zip")])
        .await
        .unwrap();
    replace_journal(&root, &cut);
    fs::remove_dir_all(cut.join("tmp")).unwrap();
    let world = World::open(&cut).await.unwrap();
    assert_eq!(world.last, Seq(1));
    assert_eq!(read(&world.engine.volume(), &key("a.zip")), None);
    close(world.engine).unwrap();
    assert_eq!(files(&cut).into_keys().collect::<Vec<_>>(), ["job"]);
}
