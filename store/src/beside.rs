//! Two pieces of work at the same time.

use std::thread;

/// Does `here` on this thread and `beside` on one of its own, and waits for both. Where no thread is to be had, one comes
/// after the other.
pub(crate) fn both<A, B: Send>(here: impl FnOnce() -> A, beside: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, &beside);
        let done = here();
        let helped = match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(helped)) => helped,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => beside(),
        };
        (done, helped)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::thread;

    use super::both;

    #[test]
    fn both_are_done_each_on_its_thread() {
        let (here, beside) = both(|| thread::current().id(), || thread::current().id());
        assert_eq!(here, thread::current().id());
        assert_ne!(beside, here);
    }

    #[test]
    fn a_panic_of_either_is_the_callers() {
        let broken = |work: fn()| panic::catch_unwind(AssertUnwindSafe(|| both(work, work)));
        let message = *broken(|| panic!("broken"))
            .unwrap_err()
            .downcast::<&str>()
            .unwrap();
        assert_eq!(message, "broken");
        let beside = panic::catch_unwind(|| both(|| (), || panic!("beside")));
        let message = *beside.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(message, "beside");
    }
}
