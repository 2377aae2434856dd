//! Whether the daemon lives and serves.

use reconciler::Handle;
use serde_json::json;
use state::Room;
use warp::reply::Response;
use wire::{ErrorCode, Health, HealthStatus};

use crate::failure::Failure;
use crate::reply;

/// The process answers, and says how full its disk is. Nobody gets well by a restart, so the status is 200 all the same.
pub(super) async fn alive(handle: &Handle) -> Result<Response, Failure> {
    let state = handle.state().clone();
    // A disk that hangs must not take the threads that serve with it.
    let room = tokio::task::spawn_blocking(move || state.room()).await;
    let room = room.map_err(|_| Failure::new(ErrorCode::Unavailable, "the daemon is stopping"))?;
    Ok(reply::ok(&health(room)))
}

fn health(room: Room) -> Health {
    let (status, reason) = match room {
        Room::Enough => (HealthStatus::Ok, None),
        Room::Low => (
            HealthStatus::DiskLow,
            Some("the disk of the state folder is getting full: no new jobs are taken"),
        ),
        Room::Full => (
            HealthStatus::DiskFull,
            Some("the disk of the state folder is full: only what runs is brought to its end"),
        ),
    };
    let reason = reason.map(str::to_owned);
    Health { status, reason }
}

/// The state is open and commands are taken: the listener exists only then, and a failed commit ends the process.
pub(super) fn ready() -> Response {
    reply::ok(&json!({"status": "ready"}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_has_a_reason() {
        let told = [Room::Enough, Room::Low, Room::Full].map(|room| json!(health(room)));
        assert_eq!(told[0], json!({"status": "ok"}));
        assert_eq!(told[1]["status"], "disk_low");
        assert_eq!(told[2]["status"], "disk_full");
        for told in &told[1..] {
            assert!(
                told["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.contains("full"))
            );
        }
    }
}
