//! The turns of costly work: one for two cores, on threads of the lowest priority. Each network has one place, and each user whose
//! browser is known. Known users come first, so that guesses from many networks do not make them wait.

use std::collections::{HashSet, VecDeque};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::setpriority_process;

use crate::limits::{AT_ONCE, NICE, WAITING};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A user who is known already.
    User(String),
    Network(IpAddr),
}

/// Costly work. It gives its place back before it reports its result, because then the next request may come.
type Work = Box<dyn FnOnce(Taken) + Send>;

/// A taken place, which is free when this is dropped.
pub(crate) struct Taken {
    turns: Arc<Turns>,
    place: Place,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.turns.waiting().taken.remove(&self.place);
    }
}

#[derive(Default)]
pub(crate) struct Turns(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    users: VecDeque<(Taken, Work)>,
    networks: VecDeque<(Taken, Work)>,
    /// The places of waiting and of running work.
    taken: HashSet<Place>,
    threads: usize,
}

impl Turns {
    /// Adds work. False if its place is taken, or too much work waits.
    pub(crate) fn add(self: &Arc<Self>, place: Place, work: Work) -> bool {
        let mut waiting = self.waiting();
        let queue = match &place {
            Place::User(_) => &waiting.users,
            Place::Network(_) => &waiting.networks,
        };
        if queue.len() >= WAITING || waiting.taken.contains(&place) {
            return false;
        }
        if waiting.threads < at_once() {
            let turns = self.clone();
            let thread = thread::Builder::new().name("passwords".to_owned());
            match thread.spawn(move || turns.run()) {
                Ok(_) => waiting.threads += 1,
                Err(error) if waiting.threads == 0 => {
                    tracing::warn!(%error, "no thread for passwords");
                    return false;
                }
                // The other threads do it.
                Err(_) => {}
            }
        }
        waiting.taken.insert(place.clone());
        let turns = self.clone();
        let taken = Taken { turns, place };
        match &taken.place {
            Place::User(_) => waiting.users.push_back((taken, work)),
            Place::Network(_) => waiting.networks.push_back((taken, work)),
        }
        true
    }

    /// Works until nothing waits. An idle daemon has no thread for this.
    fn run(&self) {
        // The thread that calls this, not the process.
        if let Err(error) = setpriority_process(None, NICE) {
            tracing::debug!(%error, "passwords are checked with ordinary priority");
        }
        while let Some((taken, work)) = self.next() {
            // `threads` counts this thread, so a panic must not end it.
            if catch_unwind(AssertUnwindSafe(|| work(taken))).is_err() {
                tracing::error!("checking a password panicked");
            }
        }
    }

    fn next(&self) -> Option<(Taken, Work)> {
        let mut waiting = self.waiting();
        let users = waiting.users.pop_front();
        let next = users.or_else(|| waiting.networks.pop_front());
        if next.is_none() {
            waiting.threads -= 1;
        }
        next
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at_once() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).clamp(1, AT_ONCE)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn network(number: u8) -> Place {
        Place::Network([192, 0, 2, number].into())
    }

    /// Occupies all threads until the sender is dropped.
    fn occupied(turns: &Arc<Turns>) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        for n in 0..at_once() {
            let (begun, has_begun) = mpsc::channel();
            let released = released.clone();
            let work = move |_taken| {
                begun.send(()).unwrap();
                let _ = released.lock().unwrap().recv();
            };
            assert!(turns.add(Place::User(format!("busy {n}")), Box::new(work)));
            has_begun.recv().unwrap();
        }
        release
    }

    #[test]
    fn each_network_and_user_has_one_place_and_users_come_first() {
        let turns = Arc::<Turns>::default();
        let release = occupied(&turns);
        let (done, order) = mpsc::channel();
        let add = |place: Place| {
            let (done, shown) = (done.clone(), place.clone());
            let work = move |taken| {
                drop(taken);
                done.send(shown).unwrap();
            };
            turns.add(place, Box::new(work))
        };
        assert!(add(network(1)));
        assert!(!add(network(1)), "one place for a network");
        assert!(add(network(2)));
        let user = Place::User("anna".to_owned());
        assert!(add(user.clone()));
        assert!(!add(user.clone()), "one place for a user");
        drop(release);
        let first = [(); 3].map(|()| order.recv().unwrap());
        if at_once() == 1 {
            assert_eq!(first, [user, network(1), network(2)]);
        }
        assert!(add(network(2)), "the place is free before the result");
        assert_eq!(order.recv().unwrap(), network(2));
    }

    #[test]
    fn the_work_that_waits_is_bounded_and_networks_do_not_take_the_places_of_users() {
        let turns = Arc::<Turns>::default();
        let release = occupied(&turns);
        let add = |place| turns.add(place, Box::new(drop));
        let added = (0..=u8::MAX).filter(|n| add(network(*n)));
        assert_eq!(added.count(), WAITING);
        assert!(add(Place::User("anna".to_owned())));
        drop(release);
    }

    #[test]
    fn work_has_the_lowest_priority_and_other_threads_keep_theirs() {
        let turns = Arc::<Turns>::default();
        let (done, priority) = mpsc::channel();
        let get = || rustix::process::getpriority_process(None).unwrap();
        let before = get();
        let work = move |_taken| done.send(get()).unwrap();
        assert!(turns.add(network(1), Box::new(work)));
        assert_eq!(priority.recv().unwrap(), NICE);
        assert_eq!(get(), before);
    }
}
