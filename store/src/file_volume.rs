//! Large objects and growing files as files of the tree.

use bytes::Bytes;

use crate::append_file::AppendFile;
use crate::disk::DiskFile;
use crate::fault::Fault;
use crate::key::Key;
use crate::manifest;
use crate::objects::{self, Objects};
use crate::space::{Gauge, Room};
use crate::staged::Staged;
use crate::tree::Tree;
use crate::volume::{GrowingFile, ObjectWriter, ReadAt, Volume};

pub(crate) struct FileVolume {
    pub(crate) tree: Tree,
    pub(crate) objects: Objects,
    pub(crate) gauge: Gauge,
}

impl Volume for FileVolume {
    fn create_object(&self) -> Result<Box<dyn ObjectWriter>, Fault> {
        Ok(Box::new(self.objects.create()?))
    }

    fn open_object(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        Ok(self.objects.open(key)?.map(reading))
    }

    fn open_growing(&self, key: &Key) -> Result<Box<dyn GrowingFile>, Fault> {
        let file = AppendFile::open(self.tree.clone(), key)?;
        Ok(Box::new(file))
    }

    fn read_growing(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        Ok(self.tree.open(key)?.map(reading))
    }

    fn room(&self) -> Result<Room, Fault> {
        Ok(self.gauge.read()?)
    }

    fn forget_restored(&self) -> Result<(), Fault> {
        Ok(manifest::forget_restored(
            &self.tree.disk,
            self.tree.root(),
        )?)
    }
}

fn reading(file: DiskFile) -> Box<dyn ReadAt> {
    Box::new(file)
}

impl ReadAt for DiskFile {
    fn size(&self) -> Result<u64, Fault> {
        Ok(self.len()?)
    }

    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault> {
        let left = self.len()?.saturating_sub(at);
        let limit = limit.min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(Self::read_at(self, at, limit)?)
    }
}

impl ObjectWriter for objects::ObjectWriter {
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), Fault> {
        Ok(self.write_all(pieces)?)
    }

    fn finish(self: Box<Self>) -> Result<Staged, Fault> {
        Ok((*self).finish()?)
    }
}

impl GrowingFile for AppendFile {
    fn size(&self) -> u64 {
        self.len()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<u64, Fault> {
        Ok(Self::append(self, bytes)?)
    }

    fn cut(&mut self, size: u64) -> Result<(), Fault> {
        Ok(Self::cut(self, size)?)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(Self::sync(self)?)
    }
}
