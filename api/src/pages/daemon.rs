//! The daemon itself: its audit log and its version.

use model::{AuditKind, Scope};
use ui::pages::{self, About, Audit, Disk};
use warp::reply::Response;

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::audit::{self, AuditQuery};
use crate::handlers::health;

pub(super) async fn audit(frame: &Frame<'_>) -> Result<Response, Failure> {
    let query = AuditQuery::of(&frame.request.query.trimmed())?;
    let page = Audit {
        records: &audit::list(frame.user, &query).await?,
        actor: frame.query("actor").trim(),
        kind: frame.query("kind"),
        kinds: AuditKind::NAMES,
    };
    Ok(frame.page(pages::audit(&frame.visit, &page)))
}

pub(super) async fn about(frame: &Frame<'_>) -> Result<Response, Failure> {
    let handle = &frame.service.handle;
    let health = health::load_health(handle).await?;
    let (_, readiness) = health::load_readiness(handle).await?;
    let disk = match frame.may(Scope::Metrics) {
        true => health::load_disk(handle).await?,
        false => None,
    };
    let licences: Vec<(&str, &str)> = ui::licences().collect();
    let page = About {
        health: &health,
        readiness: &readiness,
        state_folder: match frame.may(Scope::Admin) {
            true => frame.service.state_folder.as_deref(),
            false => None,
        },
        disk: disk.map(|disk| Disk {
            total: disk.total,
            free: disk.free,
        }),
        licences: &licences,
    };
    Ok(frame.page(pages::about(&frame.visit, &page)))
}
