//! Tests commands that wait for histories.

use super::*;

/// Needs the history of a scan. Its answer is whether the world has the history.
#[derive(Clone)]
pub(super) struct NeedsHistory(pub(super) ScanKey);

impl Command for NeedsHistory {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn histories(&self, _: &World) -> BTreeSet<ScanKey> {
        BTreeSet::from([self.0.clone()])
    }

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        Ok(Decision::unchanged(world.recent(&self.0).is_some()))
    }
}

/// Adds the head of a scan, as the end of its first job does.
#[derive(Clone)]
struct Begin(ScanKey);

impl Command for Begin {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let head = ScanHead::new(self.0.workflow, self.0.scan);
        Ok(Decision {
            changes: vec![Change::Head(Arc::new(head))],
            answer: (),
        })
    }
}

/// Reads a history when it gets a permit. If `fails` is set, the first read fails.
struct Slow {
    permits: Semaphore,
    fails: AtomicBool,
}

impl ReadRecent for Slow {
    fn read<'a>(
        &'a self,
        _: &'a KnownPast,
    ) -> Pin<Box<dyn Future<Output = Result<Recent, ReadError>> + Send + 'a>> {
        Box::pin(async {
            self.permits.acquire().await.unwrap().forget();
            if self.fails.swap(false, Ordering::Relaxed) {
                let broken = io::Error::other("broken");
                let fault = store::Fault::new(store::FaultKind::Other, broken);
                return Err(ReadError::file("history", fault));
            }
            Ok(Recent::default())
        })
    }
}

fn slow(bench: &mut Bench, fails: bool) -> Arc<Slow> {
    let slow = Arc::new(Slow {
        permits: Semaphore::new(0),
        fails: AtomicBool::new(fails),
    });
    bench.histories = Some(slow.clone());
    slow
}

pub(super) fn scan() -> ScanKey {
    ScanKey {
        workflow: WorkflowId::from_uuid(uuid::Uuid::nil()),
        scan: "a".parse().unwrap(),
    }
}

#[tokio::test]
async fn reading_a_history_delays_only_commands_that_need_it() {
    let mut bench = Bench::new();
    let slow = slow(&mut bench, false);
    let begun = bench.submit(Begin(scan()));
    let mut needing = bench.submit(NeedsHistory(scan()));
    let other = bench.submit(create_token());
    bench.start().await;
    begun.await.unwrap().unwrap();
    other.await.unwrap().unwrap();
    assert!(needing.try_recv().is_err(), "the history is not read yet");
    slow.permits.add_permits(1);
    assert!(needing.await.unwrap().unwrap());
    // The history is now in the world.
    assert!(bench.submit(NeedsHistory(scan())).await.unwrap().unwrap());
}

#[tokio::test]
async fn an_unreadable_history_is_read_again_for_the_next_command_that_needs_it() {
    let mut bench = Bench::new();
    let slow = slow(&mut bench, true);
    slow.permits.add_permits(2);
    bench.submit(Begin(scan()));
    let first = bench.submit(NeedsHistory(scan()));
    bench.start().await;
    assert!(!first.await.unwrap().unwrap());
    assert!(bench.submit(NeedsHistory(scan())).await.unwrap().unwrap());
}

#[tokio::test]
async fn commands_that_wait_for_a_history_are_answered_after_the_queue_is_closed() {
    let mut bench = Bench::new();
    let slow = slow(&mut bench, false);
    bench.submit(Begin(scan()));
    let needing = bench.submit(NeedsHistory(scan()));
    bench.start().await;
    drop(bench);
    slow.permits.add_permits(1);
    assert!(needing.await.unwrap().unwrap());
}
