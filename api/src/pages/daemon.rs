//! The daemon itself: what was changed in it, and what it is.

use ui::pages::{self, About, Audit};
use warp::reply::Response;

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::{audit, health};

pub(super) async fn audit(frame: &Frame<'_>) -> Result<Response, Failure> {
    let token = frame.query("token").trim();
    let query = [("token", token), ("cursor", frame.query("cursor"))];
    let records = audit::load_list(frame.me, &frame.request.asking(&[], &query)).await?;
    let page = Audit {
        records: &records,
        token,
    };
    Ok(frame.page(pages::audit(&frame.visit, &page)))
}

pub(super) async fn about(frame: &Frame<'_>) -> Result<Response, Failure> {
    let handle = &frame.service.handle;
    let health = health::load_health(handle).await?;
    let (_, readiness) = health::load_readiness(handle).await?;
    let page = About {
        health: &health,
        readiness: &readiness,
        state_folder: None,
        licences: &[],
    };
    Ok(frame.page(pages::about(&frame.visit, &page)))
}
