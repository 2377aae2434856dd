//! Blocking work, off the async threads.

use std::sync::{Arc, Weak};

use store::Room;
use store::volume::Volume;

use crate::error::Interrupted;

/// Does work on the objects and growing files of a store. A panic of the work panics in the caller.
pub(crate) async fn on_volume<T, E>(
    volume: &Arc<dyn Volume>,
    work: impl FnOnce(&dyn Volume) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Interrupted> + Send + 'static,
{
    if volume.is_immediate() {
        return work(&**volume);
    }
    let volume = volume.clone();
    blocking(move || work(&*volume)).await
}

/// Tells blocking work whether its result is still awaited.
pub(crate) struct Awaited(Weak<()>);

impl Awaited {
    /// Fails if nobody waits for the result any more.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.0.strong_count() > 0 {
            Ok(())
        } else {
            Err(Interrupted)
        }
    }

    #[cfg(test)]
    pub(crate) fn always() -> Self {
        let waiting = Arc::new(());
        let awaited = Self(Arc::downgrade(&waiting));
        std::mem::forget(waiting);
        awaited
    }

    #[cfg(test)]
    pub(crate) fn by_nobody() -> Self {
        Self(Weak::new())
    }
}

/// Like [`on_volume`], for long work that should end early when the caller drops the future.
pub(crate) async fn while_awaited<T, E>(
    volume: &Arc<dyn Volume>,
    work: impl FnOnce(&dyn Volume, &Awaited) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Interrupted> + Send + 'static,
{
    let waiting = Arc::new(());
    let awaited = Awaited(Arc::downgrade(&waiting));
    let done = on_volume(volume, move |volume| work(volume, &awaited)).await;
    drop(waiting);
    done
}

/// Does blocking work on the runtime's blocking threads. A panic of the work panics in the caller.
pub(crate) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Interrupted> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Interrupted.into()),
        },
    }
}

/// How full the disk is. If this cannot be measured, the next write finds out.
pub(crate) fn room(volume: &dyn Volume) -> Room {
    volume.room().unwrap_or(Room::Enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ReadError;

    #[tokio::test]
    async fn a_panic_of_blocking_work_is_not_reported_as_an_interruption() {
        let work = async { blocking(|| -> Result<(), ReadError> { panic!("on purpose") }).await };
        assert!(tokio::spawn(work).await.unwrap_err().is_panic());
    }
}
