//! Health of the daemon.

use chrono::SecondsFormat;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use reconciler::{ClockTrouble, Handle, jump};
use state::{DiskBytes, Room, State};
use warp::Reply;
use warp::reply::Response;
use wire::{ErrorCode, Health, HealthStatus, Readiness, ReadyStatus};

use crate::failure::Failure;
use crate::metrics::{self, Measured};
use crate::reply;
use crate::service::Service;

/// The state of the disk and the clock. The status is always 200, because a restart would fix neither.
pub(crate) async fn alive(handle: &Handle) -> Result<Response, Failure> {
    Ok(reply::ok(&load_health(handle).await?))
}

pub(crate) async fn load_health(handle: &Handle) -> Result<Health, Failure> {
    Ok(health(room(handle).await?, handle.clock().trouble()))
}

fn health(room: Room, clock: Option<ClockTrouble>) -> Health {
    let (status, reason) = match room {
        Room::Enough => return clock.map_or_else(well, of_clock),
        Room::Low => (
            HealthStatus::DiskLow,
            "the disk of the state folder is getting full: no new jobs are taken",
        ),
        Room::Full => (
            HealthStatus::DiskFull,
            "the disk of the state folder is full: only running jobs are finished",
        ),
    };
    let reason = Some(reason.to_owned());
    Health { status, reason }
}

const fn well() -> Health {
    Health {
        status: HealthStatus::Ok,
        reason: None,
    }
}

fn of_clock(trouble: ClockTrouble) -> Health {
    let time = |at: model::Timestamp| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (status, reason) = match trouble {
        ClockTrouble::Jumped {
            by,
            until,
            schedules,
        } => {
            let until = time(until);
            let jumped = by.map_or("is or was wrong".to_owned(), |by| {
                format!("jumped {}", jump(by))
            });
            let mut reason =
                format!("the wall clock {jumped}: nothing is deleted by age until {until}");
            match schedules {
                0 => {}
                1 => reason
                    .push_str("; 1 schedule was evaluated far ahead of it and restarts from now"),
                _ => reason.push_str(&format!(
                    "; {schedules} schedules were evaluated far ahead of it and restart from now"
                )),
            }
            (HealthStatus::ClockJumped, reason)
        }
        ClockTrouble::Ahead { schedules, until } => {
            let until = time(until);
            let evaluated = match schedules {
                1 => format!(
                    "1 schedule was evaluated up to {until}, ahead of the wall clock; it waits"
                ),
                _ => format!(
                    "{schedules} schedules were evaluated ahead of the wall clock, one of them up to {until}; they wait"
                ),
            };
            let reason = format!("{evaluated} until the clock gets there: is the clock right?");
            (HealthStatus::SchedulesAhead, reason)
        }
    };
    Health {
        status,
        reason: Some(reason),
    }
}

/// Whether load balancers should send work here: 503 with the reasons while new jobs are refused. It does not check the state:
/// the listener starts after the state is open, and a failed commit ends the process.
pub(crate) async fn ready(handle: &Handle) -> Result<Response, Failure> {
    let (status, readiness) = load_readiness(handle).await?;
    Ok(reply::json(status, &readiness))
}

pub(crate) async fn load_readiness(handle: &Handle) -> Result<(StatusCode, Readiness), Failure> {
    Ok(readiness(room(handle).await?, handle.is_stopping()))
}

fn readiness(room: Room, is_stopping: bool) -> (StatusCode, Readiness) {
    let stopping = is_stopping.then(|| "the daemon is stopping".to_owned());
    let reasons: Vec<String> = stopping
        .into_iter()
        .chain(health(room, None).reason)
        .collect();
    if reasons.is_empty() {
        let status = ReadyStatus::Ready;
        (StatusCode::OK, Readiness { status, reasons })
    } else {
        let status = ReadyStatus::NotReady;
        (
            StatusCode::SERVICE_UNAVAILABLE,
            Readiness { status, reasons },
        )
    }
}

pub(crate) async fn metrics(service: &Service) -> Result<Response, Failure> {
    let handle = &service.handle;
    let read = measured(handle, |state| Measured {
        room: state.room(),
        disk: state.disk_bytes(),
        backup: state.newest_backup(),
    });
    let text = service.metrics.text(handle, &read.await?);
    let text = text.map_err(|error| Failure::internal(&error))?;
    let mut response = text.into_response();
    reply::set(&mut response, CONTENT_TYPE, metrics::MEDIA_TYPE);
    reply::set(&mut response, CACHE_CONTROL, "no-store");
    Ok(response)
}

async fn room(handle: &Handle) -> Result<Room, Failure> {
    measured(handle, State::room).await
}

pub(crate) async fn load_disk(handle: &Handle) -> Result<Option<DiskBytes>, Failure> {
    measured(handle, State::disk_bytes).await
}

/// Reads the disk on a blocking thread, because a disk that does not answer must not block request threads.
async fn measured<T: Send + 'static>(handle: &Handle, ask: fn(&State) -> T) -> Result<T, Failure> {
    let state = handle.state().clone();
    let answer = tokio::task::spawn_blocking(move || ask(&state)).await;
    answer.map_err(|_| Failure::new(ErrorCode::Unavailable, "the daemon is stopping"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_daemon_is_not_ready_while_it_accepts_no_new_jobs() {
        let ready = |room, is_stopping| {
            let (status, body) = readiness(room, is_stopping);
            assert_eq!(status == 200, body.reasons.is_empty());
            body.reasons.len()
        };
        assert_eq!(ready(Room::Enough, false), 0);
        assert_eq!(ready(Room::Low, false), 1);
        assert_eq!(ready(Room::Full, true), 2);
    }

    #[test]
    fn every_unhealthy_status_has_a_reason() {
        let answer = [Room::Enough, Room::Low, Room::Full].map(|room| json!(health(room, None)));
        assert_eq!(answer[0], json!({"status": "ok"}));
        assert_eq!(answer[1]["status"], "disk_low");
        assert_eq!(answer[2]["status"], "disk_full");
        for answer in &answer[1..] {
            assert!(
                answer["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.contains("full"))
            );
        }
        let until = model::Timestamp::UNIX_EPOCH;
        let days = Some(chrono::TimeDelta::days(-400));
        let jumped = |by, schedules| ClockTrouble::Jumped {
            by,
            until,
            schedules,
        };
        let ahead = |schedules| ClockTrouble::Ahead { schedules, until };
        for (trouble, status, reason) in [
            (
                jumped(days, 0),
                "clock_jumped",
                "clock jumped back 400 days: nothing",
            ),
            (
                jumped(days, 1),
                "clock_jumped",
                "; 1 schedule was evaluated far ahead of it and restarts from now",
            ),
            (
                jumped(None, 3),
                "clock_jumped",
                "the wall clock is or was wrong: nothing",
            ),
            (
                jumped(None, 3),
                "clock_jumped",
                "; 3 schedules were evaluated far ahead of it and restart from now",
            ),
            (
                ahead(1),
                "schedules_ahead",
                "1 schedule was evaluated up to 1970-01-01T00:00:00Z, ahead of the wall clock; it waits until the clock gets there: is the clock right?",
            ),
            (
                ahead(2),
                "schedules_ahead",
                "2 schedules were evaluated ahead of the wall clock, one of them up to 1970-01-01T00:00:00Z; they wait until the clock",
            ),
        ] {
            let answer = json!(health(Room::Enough, Some(trouble)));
            assert_eq!(answer["status"], status);
            assert!(
                answer["reason"].as_str().unwrap().contains(reason),
                "{answer}"
            );
            let answer = json!(health(Room::Low, Some(trouble)));
            assert_eq!(answer["status"], "disk_low", "what stops jobs comes first");
        }
    }
}
