//! The thread of the jobs. The session has another thread, so that a slow disk never delays its contact with the daemon.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread; it ends when this value is dropped. A blocking thread may still pack a file of an abandoned job; nothing waits for
/// it.
pub(crate) struct JobsThread {
    pub(crate) runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl JobsThread {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        // Jobs log to the same place as the session.
        let log = tracing::dispatcher::get_default(Clone::clone);
        thread::Builder::new()
            .name("jobs".to_owned())
            .spawn(move || {
                let _log = tracing::dispatcher::set_default(&log);
                // Nothing is ever sent: the thread ends when the sender is dropped.
                let _ = runtime.block_on(stopped);
                runtime.shutdown_background();
            })?;
        Ok(Self {
            runtime: handle,
            _stop: stop,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::task::{JoinSet, yield_now};

    use super::*;

    #[tokio::test]
    async fn a_job_that_waits_for_a_disk_does_not_hold_the_session() {
        let thread = JobsThread::start().unwrap();
        let (session, disk) = mpsc::channel();
        let mut jobs = JoinSet::new();
        let patience = Duration::from_secs(180);
        let job = async move { disk.recv_timeout(patience) };
        jobs.spawn_on(job, &thread.runtime);
        yield_now().await;
        session.send("it goes on").unwrap();
        assert_eq!(jobs.join_next().await.unwrap().unwrap(), Ok("it goes on"));
    }
}
