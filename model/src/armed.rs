//! The start times of the triggers of a workflow's scans. An activation itself starts no job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::notify::NotifyName;
use workflow::{Scan, ScanName, Workflow};

use crate::{Order, Timestamp};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Armed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<ArmedCron>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<ArmedExpr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<ArmedCallback>,
    /// Since when a success is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmedExpr {
    pub expression: String,
    /// Only later successes trigger the scan.
    pub since: Order,
    /// Set only for an expression with `has_news`: after this activation it is evaluated once without a new success, so
    /// that a new or repaired scan does not wait for a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Order>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmedCron {
    /// The five fields, as written. Several schedules are separated by `; `.
    pub schedule: String,
    pub timezone: String,
    /// Only later slots are due.
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmedCallback {
    pub server: NotifyName,
    /// Only later interactions trigger the scan.
    pub since: Order,
}

impl Armed {
    /// Applies renames of scans to the expression. So an expression that only follows a rename counts as unchanged.
    fn renamed(&self, definition: &Workflow) -> Self {
        let mut renamed = self.clone();
        if let Some(expr) = &mut renamed.expr {
            let renames = definition.scans().filter_map(|scan| {
                let former = scan.renamed_from.as_ref()?;
                Some((former.as_str(), scan.name.as_str()))
            });
            expr.expression = workflow::renamed(&expr.expression, &renames.collect());
        }
        renamed
    }
}

/// The triggers of a definition that becomes active now. An unchanged schedule or expression keeps its start; a new or
/// changed trigger starts now (design section 4). `replaced` is the previous definition.
pub(crate) fn arm(
    before: Option<&BTreeMap<ScanName, Armed>>,
    replaced: Option<&Workflow>,
    definition: &Workflow,
    now: Timestamp,
    order: Order,
) -> BTreeMap<ScanName, Armed> {
    definition
        .scans()
        .filter_map(|scan| {
            let name = |name: &ScanName| before.and_then(|before| before.get(name));
            let known = name(&scan.name).or(scan.renamed_from.as_ref().and_then(name));
            let known = known.map(|known| known.renamed(definition));
            let known = known.as_ref();
            let armed = Armed {
                cron: arm_cron(known, scan, now),
                expr: arm_expr(known, is_same(replaced, scan), scan, order),
                callback: arm_callback(known, scan, order),
                expected: scan
                    .expect
                    .success_every
                    .map(|_| known.and_then(|known| known.expected).unwrap_or(now)),
            };
            (armed != Armed::default()).then(|| (scan.name.clone(), armed))
        })
        .collect()
}

fn arm_cron(known: Option<&Armed>, scan: &Scan, now: Timestamp) -> Option<ArmedCron> {
    let schedule = scan.on.cron.as_ref()?.source().to_owned();
    let timezone = scan.on.timezone.name().to_owned();
    let unchanged = known
        .and_then(|known| known.cron.as_ref())
        .filter(|known| known.schedule == schedule && known.timezone == timezone);
    Some(ArmedCron {
        since: unchanged.map_or(now, |known| known.since),
        schedule,
        timezone,
    })
}

fn arm_expr(known: Option<&Armed>, is_same: bool, scan: &Scan, order: Order) -> Option<ArmedExpr> {
    let expr = scan.on.expr.as_ref()?;
    let expression = expr.source().to_owned();
    let unchanged = known
        .and_then(|known| known.expr.as_ref())
        .filter(|known| known.expression == expression);
    let look = match unchanged {
        Some(known) if is_same => known.look,
        Some(_) | None => (!expr.references().news.is_empty()).then_some(order),
    };
    Some(ArmedExpr {
        since: unchanged.map_or(order, |known| known.since),
        expression,
        look,
    })
}

fn arm_callback(known: Option<&Armed>, scan: &Scan, order: Order) -> Option<ArmedCallback> {
    let server = scan.on.callback.as_ref()?.server.clone();
    let unchanged = known
        .and_then(|known| known.callback.as_ref())
        .filter(|known| known.server == server);
    Some(ArmedCallback {
        since: unchanged.map_or(order, |known| known.since),
        server,
    })
}

fn is_same(replaced: Option<&Workflow>, scan: &Scan) -> bool {
    let before = replaced.and_then(|replaced| replaced.scan(scan.name.as_str()));
    before.is_some_and(|before| before.digest() == scan.digest())
}
