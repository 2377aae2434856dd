//! Removes the files of expired artifacts every hour.
//!
//! The end of a job stores its id under the hour in which its first artifact expires, so nothing has to be searched.
//! Expired artifacts cannot be downloaded. The time of removal matters only for disk space.

use std::time::Duration;

use chrono::{DurationRound, TimeDelta};
use model::decide::{DropExpiry, RemoveArtifacts};
use model::retention::Expiry;
use model::{Actor, Reason, Timestamp};

use crate::callbacks::remove_old;
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::EXPIRY_CHECK;
use crate::payloads::clear_payload_groups;

/// Removes expired artifacts and blobs, old interactions, and deleted payloads, at the start and every hour.
pub(crate) async fn remove_expired(handle: Handle) {
    loop {
        if let Err(error) = remove_expired_artifacts(&handle).await {
            tracing::error!(%error, "expired artifacts cannot be removed; this is retried within an hour");
        }
        let blobs = handle.blobs().remove_expired(|| handle.clock().ages());
        if let Err(error) = blobs.await {
            tracing::error!(%error, "expired blobs cannot be removed; this is retried within an hour");
        }
        if let Err(error) = clear_payload_groups(&handle).await {
            tracing::error!(%error, "deleted payloads cannot be removed; this is retried within an hour");
        }
        // While the clock is not trusted, nothing expires.
        if let Some(now) = handle.clock().ages()
            && let Err(error) = remove_old(&handle, now).await
        {
            tracing::error!(%error, "old interactions cannot be removed; this is retried within an hour");
        }
        tokio::time::sleep(until_next_hour(handle.now())).await;
    }
}

/// Removes the artifacts that expired in past hours.
pub(crate) async fn remove_expired_artifacts(handle: &Handle) -> Result<(), RemovalError> {
    loop {
        // While the clock is not trusted, nothing expires.
        let Some(now) = handle.clock().ages() else {
            return Ok(());
        };
        let due = handle.state().expired(now).await?;
        if due.is_empty() {
            return Ok(());
        }
        let mut is_stuck = true;
        for expiry in due {
            let job = expiry.job;
            let removal = async move |handle: Handle| expire(&handle, expiry, now).await;
            match handle.with_removal_lock(removal).await {
                Ok(()) => is_stuck = false,
                Err(error) => {
                    tracing::error!(%job, %error, "expired artifacts cannot be removed");
                }
            }
        }
        if is_stuck {
            return Ok(());
        }
        // Wait, so that the next round sees the removals.
        handle.state().settled().await?;
    }
}

async fn expire(handle: &Handle, expiry: Expiry, now: Timestamp) -> Result<(), RemovalError> {
    let found = handle.state().job(expiry.job).await?;
    let Some(mut job) = found.filter(|job| job.expiry().as_ref() == Some(&expiry)) else {
        // A person removed the job's files by hand.
        return Ok(handle.state().submit(DropExpiry { expiry }).await?);
    };
    let mut bytes = job.bytes();
    while let Some(due) = job.expiry().filter(|due| due.at <= now) {
        let over = job.stored_artifacts().filter(|it| it.is_over(now));
        let remove = RemoveArtifacts {
            names: over.map(|artifact| artifact.name.clone()).collect(),
            job,
            reason: Reason::Expired,
            actor: Actor::Daemon,
        };
        job = handle.state().remove_artifacts(remove).await?;
        bytes -= job.bytes();
        tracing::info!(job = %due.job, bytes, "expired artifacts are removed");
        bytes = job.bytes();
    }
    Ok(())
}

/// The time until the next hour begins, by the wall clock.
fn until_next_hour(now: Timestamp) -> Duration {
    let hour = TimeDelta::hours(1);
    let next = now.duration_trunc(hour).map(|begun| begun + hour - now);
    let wait = next.ok().and_then(|wait| wait.to_std().ok());
    wait.unwrap_or(EXPIRY_CHECK).min(EXPIRY_CHECK)
}
