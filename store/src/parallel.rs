//! Work on several threads: on many files, because most of the time is spent in the kernel or the disk, and on
//! content that is hashed while it is written.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Calls `work` for each item on up to `threads` threads, including this one. Returns the results in the order of the
/// items, or one of the errors. After an error no further item is started. With one thread the items are done in
/// order.
pub fn try_map<T: Sync, U: Send, E: Send>(
    threads: NonZeroUsize,
    items: &[T],
    work: impl Fn(&T) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let some = || -> Result<Vec<(usize, U)>, E> {
        let mut done = Vec::new();
        while !has_failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
            done.push((at, result));
        }
        Ok(done)
    };
    let mut done = thread::scope(|scope| {
        // If no thread can be started, the existing ones do the work, more slowly.
        let helpers: Vec<_> = (1..threads.get().min(items.len()))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, some).ok())
            .collect();
        let mut done = some()?;
        for helper in helpers {
            match helper.join() {
                Ok(helped) => done.extend(helped?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(done)
    })?;
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Runs `here` on this thread and `there` on another one, and waits for both. If no thread can be started, runs one
/// after the other.
pub(crate) fn both<A, B: Send>(here: impl FnOnce() -> A, there: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, &there);
        let done = here();
        let helped = match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(helped)) => helped,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => there(),
        };
        (done, helped)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn every_item_is_processed_once_and_results_keep_the_order() {
        let items: Vec<u32> = (0..57).collect();
        for count in [1, 2, 7, 100] {
            let begun = AtomicUsize::new(0);
            let result = try_map(threads(count), &items, |item| {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok::<_, ()>(item * 2)
            });
            let doubled: Vec<u32> = (0..57).map(|item| item * 2).collect();
            assert_eq!(result, Ok(doubled));
            assert_eq!(begun.into_inner(), items.len());
        }
    }

    #[test]
    fn a_failure_is_returned_and_stops_the_work() {
        let items: Vec<usize> = (0..10_000).collect();
        let last = AtomicUsize::new(0);
        for count in [1, 2] {
            let result = try_map(threads(count), &items, |item| {
                last.store(*item, Ordering::Relaxed);
                if *item == 3 { Err("three") } else { Ok(()) }
            });
            assert_eq!(result, Err("three"));
            if count == 1 {
                assert_eq!(last.load(Ordering::Relaxed), 3, "in order, and no further");
            }
        }
    }

    #[test]
    fn both_closures_run_on_different_threads() {
        let (here, there) = both(|| thread::current().id(), || thread::current().id());
        assert_eq!(here, thread::current().id());
        assert_ne!(there, here);
    }
}
