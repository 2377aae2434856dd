//! How much room the disk has. Measured at most once a second, since every commit asks.

use std::path::PathBuf;
use std::time::Duration;

use crate::disk::{Disk, DiskError, Space};
use crate::limits::{SPACE_MEASURED_EVERY, WATERMARK_BYTES, WATERMARK_PERCENT};

/// The free space below which new work is refused: the smaller of a share and a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Share of the whole disk, in percent.
    pub percent: u64,
    pub bytes: u64,
}

/// Room on the disk of a store, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    pub total: u64,
    pub free: u64,
    /// Whether new work is refused.
    pub is_low: bool,
}

#[derive(Clone)]
pub(crate) struct Gauge {
    disk: Disk,
    root: PathBuf,
    watermark: Watermark,
    measured: Option<(Duration, Space)>,
}

impl Default for Watermark {
    fn default() -> Self {
        Self {
            percent: WATERMARK_PERCENT,
            bytes: WATERMARK_BYTES,
        }
    }
}

impl Gauge {
    pub(crate) fn new(disk: Disk, root: PathBuf, watermark: Watermark) -> Self {
        Self {
            disk,
            root,
            watermark,
            measured: None,
        }
    }

    pub(crate) fn read(&mut self) -> Result<FreeSpace, DiskError> {
        let now = self.disk.elapsed();
        let recent = self
            .measured
            .filter(|(at, _)| now.saturating_sub(*at) < SPACE_MEASURED_EVERY);
        let space = match recent {
            Some((_, space)) => space,
            None => self.disk.space(&self.root)?,
        };
        self.measured = recent.or(Some((now, space)));
        let least = (space.total / 100)
            .saturating_mul(self.watermark.percent)
            .min(self.watermark.bytes);
        Ok(FreeSpace {
            total: space.total,
            free: space.free,
            is_low: space.free < least,
        })
    }
}
