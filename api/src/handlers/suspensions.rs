//! `/v0/workflows/{workflow}/suspend` and `/resume`, and the same below `/scans/{scan}`

use model::{Seen, WorkflowRecord, decide};
use warp::reply::Response;
use wire::{Resume, Suspend, SuspensionStatus};
use workflow::ScanName;

use super::workflows;
use crate::convert;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// Lets nothing of a workflow or scan start. A repeat answers the suspension that is in force.
pub(super) async fn suspend(me: &Visible, request: Request) -> Result<Response, Failure> {
    Ok(reply::ok(&begin(me, request).await?))
}

pub(crate) async fn begin(me: &Visible, mut request: Request) -> Result<SuspensionStatus, Failure> {
    let workflow = me.find(|seen| Ok(workflows::find(seen, request.parameter(0))?.id))?;
    let Suspend { reason } = request.body.json(&request.headers).await?;
    let suspend = workflow.map(|workflow| decide::Suspend {
        workflow: *workflow,
        scan: scan(&request).map(str::to_owned),
        reason,
        actor: me.actor(),
    });
    me.submit(suspend).await?;
    status(me, &request)
}

/// Lets a workflow or scan start jobs again. A repeat changes nothing.
pub(super) async fn resume(me: &Visible, request: Request) -> Result<Response, Failure> {
    Ok(reply::ok(&end(me, request).await?))
}

pub(crate) async fn end(me: &Visible, mut request: Request) -> Result<SuspensionStatus, Failure> {
    let workflow = me.find(|seen| Ok(workflows::find(seen, request.parameter(0))?.id))?;
    let Resume { reason } = request.body.json_or_default(&request.headers).await?;
    let resume = workflow.map(|workflow| decide::Resume {
        workflow: *workflow,
        scan: scan(&request).map(str::to_owned),
        reason,
        actor: me.actor(),
    });
    me.submit(resume).await?;
    status(me, &request)
}

/// The scan in the path, if it names one.
fn scan(request: &Request) -> Option<&str> {
    Some(request.parameter(1)).filter(|scan| !scan.is_empty())
}

fn status(me: &Visible, request: &Request) -> Result<SuspensionStatus, Failure> {
    me.read(|seen| {
        let record = workflows::find(seen, request.parameter(0))?;
        Ok(of(seen, record, scan(request)))
    })
}

fn of(seen: Seen<'_>, record: &WorkflowRecord, scan: Option<&str>) -> SuspensionStatus {
    let name = scan.and_then(|scan| scan.parse::<ScanName>().ok());
    let own = seen.latest_suspension(record.id, name.as_ref());
    let whole = seen.latest_suspension(record.id, None);
    let in_force = [whole, own].into_iter().flatten();
    SuspensionStatus {
        workflow: convert::workflow_ref(&record.reference()),
        scan: scan.map(str::to_owned),
        suspended: in_force.filter_map(|it| convert::suspension(it)).next(),
        resumed: own.and_then(|it| convert::resumption(it)),
    }
}
