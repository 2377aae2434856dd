//! What is stored of a run of equal looks at a scan's triggers.

use model::{Repeats, ScanKey};
use serde::{Deserialize, Serialize};

/// The file of a run of equal looks at a scan's triggers.
#[derive(Serialize, Deserialize)]
pub(crate) struct RepeatsRecord {
    #[serde(flatten)]
    pub(crate) scan: ScanKey,
    #[serde(flatten)]
    pub(crate) repeats: Repeats,
}
