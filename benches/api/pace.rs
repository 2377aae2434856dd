//! Jobs at a steady rate.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use uuid::Uuid;
use wire::DispatchResponse;

use crate::connection::Connection;
use crate::stage::Stage;

/// Jobs per second (each created, claimed and ended), and the duration of the load.
pub(crate) const JOBS: u32 = 400;
pub(crate) const SPAN: Duration = Duration::from_secs(5);

pub(crate) struct Paced {
    /// The average time of a commit in milliseconds.
    pub(crate) commit: f64,
    pub(crate) dispatches: Vec<Dispatch>,
}

pub(crate) struct Dispatch {
    pub(crate) job: Uuid,
    pub(crate) sent: Instant,
    /// Times until the response.
    pub(crate) took: Duration,
}

/// Dispatches `busy` at this rate. A runner must end its jobs.
pub(crate) async fn pace(stage: &Stage) -> Paced {
    let before = stage.commits().await;
    let (begun, mut pace) = (
        Instant::now(),
        tokio::time::interval(Duration::from_secs(1) / JOBS),
    );
    let (mut asked, mut dispatches) = (JoinSet::new(), Vec::new());
    let mut idle: Vec<Connection> = Vec::new();
    while begun.elapsed() < SPAN {
        pace.tick().await;
        while let Some(ended) = asked.try_join_next() {
            let (connection, dispatch) = ended.unwrap();
            idle.push(connection);
            dispatches.push(dispatch);
        }
        let mut connection = match idle.pop() {
            Some(connection) => connection,
            None => stage.target.connect().await,
        };
        let request = Stage::dispatch_request(&stage.target, "busy");
        asked.spawn(async move {
            let sent = Instant::now();
            let answer = connection.ask(&request).await;
            let took = sent.elapsed();
            let job = answer.json::<DispatchResponse>().job.id();
            (connection, Dispatch { job, sent, took })
        });
    }
    while let Some(ended) = asked.join_next().await {
        dispatches.push(ended.unwrap().1);
    }
    let rate = dispatches.len() as f64 / begun.elapsed().as_secs_f64();
    assert!(rate > f64::from(JOBS) * 0.9, "only {rate:.0} jobs/s");
    let after = stage.commits().await;
    Paced {
        commit: (after.seconds - before.seconds) * 1_000.0 / (after.count - before.count),
        dispatches,
    }
}
