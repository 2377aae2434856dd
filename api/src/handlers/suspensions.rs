//! `/v0/workflows/{workflow}/suspend` and `/resume`, and the same below `/scans/{scan}`

use model::{Seen, WorkflowId, WorkflowRecord, decide};
use warp::reply::Response;
use wire::{Resume, Suspend, SuspensionStatus};
use workflow::ScanName;

use super::workflows;
use crate::convert;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

pub(crate) struct Subject<'a> {
    workflow: &'a str,
    scan: Option<&'a str>,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(request: &'a Request) -> Self {
        Self {
            workflow: request.parameter(0),
            scan: Some(request.parameter(1)).filter(|scan| !scan.is_empty()),
        }
    }

    fn find(&self, user: &Visible) -> Result<Shown<WorkflowId>, Failure> {
        user.find(|seen| Ok(workflows::find(seen, self.workflow)?.id))
    }

    fn status(&self, user: &Visible) -> Result<SuspensionStatus, Failure> {
        user.read(|seen| Ok(of(seen, workflows::find(seen, self.workflow)?, self.scan)))
    }
}

pub(super) async fn suspend(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    Subject::of(&request).find(user)?;
    let asked = request.body.json(&request.headers).await?;
    Ok(reply::ok(
        &begin(user, &Subject::of(&request), asked).await?,
    ))
}

/// Keeps a workflow or scan from starting jobs. A repeat returns the suspension that is in force.
pub(crate) async fn begin(
    user: &Visible,
    subject: &Subject<'_>,
    Suspend { reason }: Suspend,
) -> Result<SuspensionStatus, Failure> {
    let workflow = subject.find(user)?;
    let suspend = workflow.map(|workflow| decide::Suspend {
        workflow: *workflow,
        scan: subject.scan.map(str::to_owned),
        reason,
        actor: user.actor(),
    });
    user.submit(suspend).await?;
    subject.status(user)
}

pub(super) async fn resume(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    Subject::of(&request).find(user)?;
    let asked = request.body.json_or_default(&request.headers).await?;
    Ok(reply::ok(&end(user, &Subject::of(&request), asked).await?))
}

/// Lets a workflow or scan start jobs again. A repeat changes nothing.
pub(crate) async fn end(
    user: &Visible,
    subject: &Subject<'_>,
    Resume { reason }: Resume,
) -> Result<SuspensionStatus, Failure> {
    let workflow = subject.find(user)?;
    let resume = workflow.map(|workflow| decide::Resume {
        workflow: *workflow,
        scan: subject.scan.map(str::to_owned),
        reason,
        actor: user.actor(),
    });
    user.submit(resume).await?;
    subject.status(user)
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
