//! Free space of the disk, in bytes and in files. Measured at most once a second, because every command checks it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::disk::{Disk, DiskError, Space};
use crate::limits::{
    LOW_WATER_BYTES, LOW_WATER_FILES, LOW_WATER_PERCENT, SPACE_MEASURED_EVERY, WATERMARK_BYTES,
    WATERMARK_FILES, WATERMARK_PERCENT,
};

/// A limit for free space, in bytes and in files: the smaller of a share and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Share of the disk.
    pub percent: u64,
    pub bytes: u64,
    pub files: u64,
}

/// The limits of free space below which the store does less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    pub low: Watermark,
    /// Below this, only work that has begun may finish.
    pub full: Watermark,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    #[default]
    Enough,
    /// A person should free some space.
    Low,
    Full,
}

/// Total and free bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskBytes {
    pub total: u64,
    pub free: u64,
}

/// Measures the disk of a store. Clones share their measurements.
#[derive(Clone)]
pub(crate) struct Gauge {
    disk: Disk,
    root: PathBuf,
    watermarks: Watermarks,
    measured: Arc<Mutex<Option<(Duration, Space)>>>,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self {
            low: Watermark {
                percent: LOW_WATER_PERCENT,
                bytes: LOW_WATER_BYTES,
                files: LOW_WATER_FILES,
            },
            full: Watermark {
                percent: WATERMARK_PERCENT,
                bytes: WATERMARK_BYTES,
                files: WATERMARK_FILES,
            },
        }
    }
}

impl Watermarks {
    fn room(self, space: Space) -> Room {
        if self.full.is_passed_by(space) {
            Room::Full
        } else if self.low.is_passed_by(space) {
            Room::Low
        } else {
            Room::Enough
        }
    }
}

impl Watermark {
    /// Never passed.
    pub const NONE: Self = Self {
        percent: 0,
        bytes: 0,
        files: 0,
    };

    pub(crate) fn is_passed_by(self, space: Space) -> bool {
        let share = |total: u64| (total / 100).saturating_mul(self.percent);
        let has_bytes = space.free >= share(space.total).min(self.bytes);
        // Some file systems have no fixed number of files, and report 0.
        let has_files = space.files == 0 || space.free_files >= share(space.files).min(self.files);
        !(has_bytes && has_files)
    }
}

impl Gauge {
    pub(crate) fn new(disk: Disk, root: PathBuf, watermarks: Watermarks) -> Self {
        Self {
            disk,
            root,
            watermarks,
            measured: Arc::default(),
        }
    }

    /// At most a second old. Blocks for one system call.
    pub(crate) fn read(&self) -> Result<Room, DiskError> {
        Ok(self.watermarks.room(self.measure()?))
    }

    /// From the same measurement as [`Self::read`].
    pub(crate) fn bytes(&self) -> Result<DiskBytes, DiskError> {
        let Space { total, free, .. } = self.measure()?;
        Ok(DiskBytes { total, free })
    }

    fn measure(&self) -> Result<Space, DiskError> {
        let now = self.disk.elapsed();
        // A measurement is one value, so it is valid even after a panic elsewhere.
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = measured.filter(|(at, _)| now.saturating_sub(*at) < SPACE_MEASURED_EVERY);
        let space = match recent {
            Some((_, space)) => space,
            None => {
                let space = self.disk.space(&self.root)?;
                *measured = Some((now, space));
                space
            }
        };
        Ok(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_low_when_bytes_or_files_are_low() {
        let watermark = Watermark {
            percent: 1,
            bytes: 1000,
            files: 50,
        };
        let is_low = |total, free, files, free_files| {
            watermark.is_passed_by(Space {
                total,
                free,
                files,
                free_files,
            })
        };
        assert!(!is_low(10_000, 100, 1000, 10));
        assert!(is_low(10_000, 99, 1000, 10), "less than the share of bytes");
        assert!(is_low(10_000, 100, 1000, 9), "less than the share of files");
        assert!(!is_low(1 << 40, 1000, 1 << 30, 50), "numbers count here");
        assert!(is_low(1 << 40, 999, 1 << 30, 50));
        assert!(is_low(1 << 40, 1000, 1 << 30, 49));
        assert!(!is_low(10_000, 100, 0, 0), "only the bytes count here");
    }

    #[test]
    fn a_disk_is_low_before_it_is_full() {
        let gib = 1 << 30;
        let room = |total: u64, free: u64| {
            Watermarks::default().room(Space {
                total,
                free,
                files: 0,
                free_files: 0,
            })
        };
        for (total, low, full) in [(gib, gib / 20, gib / 100), (1 << 40, gib, 16 << 20)] {
            assert_eq!(room(total, low + 100), Room::Enough);
            assert_eq!(room(total, low - 100), Room::Low);
            assert_eq!(room(total, full.min(16 << 20) + 100), Room::Low);
            assert_eq!(room(total, full.min(16 << 20) - 100), Room::Full);
        }
    }
}
