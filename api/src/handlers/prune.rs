//! `/v0/workflows/{workflow}/prune`

use chrono::TimeDelta;
use model::retention::{RetentionPolicy, Stock};
use reconciler::{Retained, ScanRetained};
use warp::reply::Response;
use wire::{Amount, PruneRequest, PrunedScan};

use super::workflows;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// Removes the finished jobs that a policy does not keep. A dry run only lists them.
pub(super) async fn prune(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: PruneRequest = request.body.json(&request.headers).await?;
    let workflow = user.find(|seen| workflows::find_readable(seen, request.parameter(0)))?;
    let policy = policy(&asked)?;
    let given = (!policy.keeps_everything()).then_some(policy);
    let retained = user.prune(&workflow, given, asked.dry_run).await?;
    Ok(reply::ok(&answer(retained, asked.dry_run)))
}

/// The requested policy. If it has no limits, the caller uses the configured policy instead.
fn policy(asked: &PruneRequest) -> Result<RetentionPolicy, Failure> {
    let age = asked.age_seconds.map(|seconds| {
        let age = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
        age.ok_or_else(|| Failure::invalid("age_seconds", "is too large"))
    });
    Ok(RetentionPolicy {
        jobs: asked.jobs,
        age: age.transpose()?,
        bytes: asked.bytes,
    })
}

fn answer(retained: Retained, dry_run: bool) -> wire::Pruned {
    let policy = retained.policy;
    wire::Pruned {
        dry_run,
        policy: wire::RetentionPolicy {
            jobs: policy.jobs,
            age_seconds: policy
                .age
                .and_then(|age| u64::try_from(age.num_seconds()).ok()),
            bytes: policy.bytes,
        },
        scans: retained.scans.iter().map(scan).collect(),
        has_more: retained.has_more,
        age_waits: retained.age_waits,
    }
}

fn scan(retained: &ScanRetained) -> PrunedScan {
    let Stock { jobs, bytes } = retained.removed;
    let removed = Amount { jobs, bytes };
    let Stock { jobs, bytes } = retained.kept;
    PrunedScan {
        scan: retained.scan.to_string(),
        removed,
        kept: Amount { jobs, bytes },
        newest_successes: retained.newest_successes,
        just_ended: retained.just_ended,
        unreadable: retained.unreadable,
        unfinished: retained.unfinished,
    }
}
