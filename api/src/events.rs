//! Live events: what each commit has changed, sent to those who listen.
//!
//! One task follows the commits while anybody listens. It makes the text of an event once, whoever gets it, and wakes
//! only those whom an event concerns. A listener that does not keep up is dropped; the task never waits for one.

mod event;
mod topics;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use model::{JobId, ProjectId, Projects, TokenId, Viewer, WorkflowId};
use reconciler::Handle;
use state::{ChangesGone, Published, Seq, Subscription};
use tokio::sync::mpsc;

use self::event::Event;
use crate::limits::{LISTENER_COMMITS, LISTENERS, PROJECT_LISTENERS, TOKEN_LISTENERS};

/// Which events a listener gets.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// With which token.
    pub(crate) token: TokenId,
    /// Who listens. What the viewer does not see is left out.
    pub(crate) viewer: Arc<Viewer>,
    /// Only of this project.
    pub(crate) project: Option<ProjectId>,
    /// Only of this workflow.
    pub(crate) workflow: Option<WorkflowId>,
    /// Only of this job.
    pub(crate) job: Option<JobId>,
    pub(crate) form: Form,
}

/// In which form events are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// What has changed, as `/v0` tells it.
    Whole,
    /// The topics of the pages that show it, and nothing else.
    Topics,
}

impl Wanted {
    /// The project of which alone it hears, if there is one.
    fn only_project(&self) -> Option<ProjectId> {
        self.project.or(match &self.viewer.projects {
            Projects::Only(projects) if projects.len() == 1 => projects.first().copied(),
            Projects::Only(_) | Projects::All => None,
        })
    }

    fn takes(&self, event: &Event) -> bool {
        fn fits<T: PartialEq>(wanted: Option<T>, of: Option<T>) -> bool {
            wanted.is_none() || wanted == of
        }
        self.viewer.scopes.allow(event.kind.scope())
            && event
                .project
                .is_none_or(|project| self.viewer.sees(project))
            && fits(self.project, event.project)
            && fits(self.workflow, event.workflow)
            && fits(self.job, event.job)
    }
}

/// The events of one commit that one listener gets.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) seq: Seq,
    pub(crate) texts: Vec<Bytes>,
}

/// What a listener has got so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Everything after this commit comes.
    From(Seq),
    /// What it asked for is gone. Everything after this commit comes.
    Resync(Seq),
}

/// The receiving side of a listener.
pub(crate) struct Listener {
    pub(crate) start: Start,
    /// The commits between the one that was asked for and `place`. They are read one by one, as the listener takes them.
    past: Option<Subscription>,
    /// The last commit before the first that comes by `batches`.
    place: Seq,
    wanted: Wanted,
    inbox: Inbox,
    is_slow: Arc<AtomicBool>,
    id: u64,
    hub: Arc<Hub>,
}

/// Where the events of a listener arrive.
enum Inbox {
    Commits(mpsc::Receiver<Batch>),
    Topics(topics::Receiver),
}

impl Inbox {
    fn is_empty(&self) -> bool {
        match self {
            Self::Commits(batches) => batches.is_empty(),
            Self::Topics(untold) => untold.is_empty(),
        }
    }
}

/// Why no more events come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The listener did not keep up.
    pub(crate) is_slow: bool,
}

impl Listener {
    /// The last commit, once the listener has got everything up to it.
    pub(crate) fn place(&self) -> Option<Seq> {
        if self.past.is_some() {
            return None;
        }
        let listeners = self.hub.listeners();
        match listeners.sent {
            Some(sent) if self.inbox.is_empty() => Some(sent),
            Some(_) | None => None,
        }
    }

    /// The events of the next commit that has any for this listener. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Batch, Dropped> {
        while let Some(commits) = &mut self.past {
            match commits.next().now_or_never() {
                Some(Ok(published)) if published.seq <= self.place => {
                    let events: Vec<Event> = event::events(&published.changes).collect();
                    if let Some(batch) = batch(published.seq, &self.wanted, &events) {
                        return Ok(batch);
                    }
                }
                Some(Ok(_)) | None => self.past = None,
                Some(Err(ChangesGone { .. })) => return Err(Dropped { is_slow: true }),
            }
        }
        let batch = match &mut self.inbox {
            Inbox::Commits(batches) => batches.recv().await,
            Inbox::Topics(untold) => untold.next().await,
        };
        let is_slow = &self.is_slow;
        batch.ok_or_else(|| Dropped {
            is_slow: is_slow.load(Ordering::Acquire),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.listeners().remove(self.id);
    }
}

/// There are too many listeners.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TooManyListeners {
    /// The token has its share.
    Token,
    /// The project has.
    Project,
    /// All tokens together.
    All,
}

/// Everybody who listens.
#[derive(Default)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    latest: u64,
    all: HashMap<u64, Sender>,
    /// Those who want one job each.
    of_jobs: HashMap<JobId, Vec<u64>>,
    /// Those who want more.
    broad: Vec<u64>,
    /// How many each token has.
    of_tokens: HashMap<TokenId, usize>,
    /// How many hear of each project alone.
    of_projects: HashMap<ProjectId, usize>,
    /// The last commit whose events were sent, while the task runs.
    sent: Option<Seq>,
}

struct Sender {
    wanted: Wanted,
    outbox: Outbox,
    is_slow: Arc<AtomicBool>,
}

/// The other side of an [`Inbox`].
enum Outbox {
    Commits(mpsc::Sender<Batch>),
    Topics(topics::Sender),
}

impl Form {
    fn channel(self) -> (Outbox, Inbox) {
        match self {
            Self::Whole => {
                let (sender, receiver) = mpsc::channel(LISTENER_COMMITS);
                (Outbox::Commits(sender), Inbox::Commits(receiver))
            }
            Self::Topics => {
                let (sender, receiver) = topics::channel();
                (Outbox::Topics(sender), Inbox::Topics(receiver))
            }
        }
    }
}

impl Sender {
    /// Passes on what the listener gets of a commit. False if it does not keep up.
    fn send(&self, seq: Seq, events: &[Event<'_>]) -> bool {
        match &self.outbox {
            Outbox::Commits(batches) => {
                let batch = batch(seq, &self.wanted, events);
                batch.is_none_or(|batch| batches.try_send(batch).is_ok())
            }
            Outbox::Topics(untold) => {
                untold.add(seq, events.iter().filter(|event| self.wanted.takes(event)));
                true
            }
        }
    }
}

impl Hub {
    /// Listens from now on, or from the commit after `after`.
    pub(crate) fn listen(
        self: &Arc<Self>,
        handle: &Handle,
        wanted: Wanted,
        after: Option<Seq>,
    ) -> Result<Listener, TooManyListeners> {
        let mut listeners = self.listeners();
        listeners.check_room(&wanted)?;
        let place = match listeners.sent {
            Some(sent) => sent,
            None => {
                let (place, commits) = follow(handle);
                listeners.sent = Some(place);
                let (hub, handle) = (self.clone(), handle.clone());
                tokio::spawn(async move {
                    let sending = AssertUnwindSafe(hub.send(handle, commits));
                    if sending.catch_unwind().await.is_err() {
                        tracing::error!("sending events panicked; listeners are dropped");
                        hub.listeners().drop_all();
                    }
                });
                place
            }
        };
        let (outbox, inbox) = wanted.form.channel();
        let is_slow = Arc::new(AtomicBool::new(false));
        let id = listeners.add(Sender {
            wanted: wanted.clone(),
            outbox,
            is_slow: is_slow.clone(),
        });
        drop(listeners);
        let (start, past) = match after.map(|after| handle.state().subscribe(after)) {
            None => (Start::From(place), None),
            Some(Ok(commits)) => (Start::From(place), Some(commits)),
            Some(Err(ChangesGone { .. })) => (Start::Resync(place), None),
        };
        Ok(Listener {
            start,
            past,
            place,
            wanted,
            inbox,
            is_slow,
            id,
            hub: self.clone(),
        })
    }

    /// Sends the events of each commit, as long as there is anybody who listens.
    async fn send(&self, handle: Handle, mut commits: Subscription) {
        loop {
            let published = tokio::select! {
                published = commits.next() => published,
                () = handle.stopping() => return self.listeners().drop_all(),
            };
            let mut listeners = self.listeners();
            if listeners.all.is_empty() {
                listeners.sent = None;
                return;
            }
            match published {
                Ok(published) => listeners.publish(&published),
                // This task itself has not kept up, and so has nobody.
                Err(ChangesGone { .. }) => {
                    let place;
                    (place, commits) = follow(&handle);
                    listeners.drop_all();
                    listeners.sent = Some(place);
                }
            }
        }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the commits from now on.
fn follow(handle: &Handle) -> (Seq, Subscription) {
    loop {
        let place = handle.state().seq();
        // It fails only if a thousand commits came in between.
        if let Ok(commits) = handle.state().subscribe(place) {
            return (place, commits);
        }
    }
}

/// What a listener gets of a commit, if that is anything.
fn batch(seq: Seq, wanted: &Wanted, events: &[Event]) -> Option<Batch> {
    let taken = events.iter().filter(|event| wanted.takes(event));
    let texts: Vec<Bytes> = taken.map(Event::text).collect();
    (!texts.is_empty()).then_some(Batch { seq, texts })
}

impl Listeners {
    fn check_room(&self, wanted: &Wanted) -> Result<(), TooManyListeners> {
        if self.of_tokens.get(&wanted.token).copied().unwrap_or(0) >= TOKEN_LISTENERS {
            return Err(TooManyListeners::Token);
        }
        let project = wanted.only_project();
        let of_project = project.and_then(|project| self.of_projects.get(&project));
        if of_project.is_some_and(|count| *count >= PROJECT_LISTENERS) {
            return Err(TooManyListeners::Project);
        }
        if self.all.len() >= LISTENERS {
            return Err(TooManyListeners::All);
        }
        Ok(())
    }

    fn add(&mut self, sender: Sender) -> u64 {
        self.latest += 1;
        let id = self.latest;
        match sender.wanted.job {
            Some(job) => self.of_jobs.entry(job).or_default().push(id),
            None => self.broad.push(id),
        }
        *self.of_tokens.entry(sender.wanted.token).or_default() += 1;
        if let Some(project) = sender.wanted.only_project() {
            *self.of_projects.entry(project).or_default() += 1;
        }
        self.all.insert(id, sender);
        id
    }

    fn remove(&mut self, id: u64) {
        let Some(sender) = self.all.remove(&id) else {
            return;
        };
        count_down(&mut self.of_tokens, sender.wanted.token);
        if let Some(project) = sender.wanted.only_project() {
            count_down(&mut self.of_projects, project);
        }
        match sender.wanted.job {
            None => self.broad.retain(|other| *other != id),
            Some(job) => {
                if let Some(listeners) = self.of_jobs.get_mut(&job) {
                    listeners.retain(|other| *other != id);
                    if listeners.is_empty() {
                        self.of_jobs.remove(&job);
                    }
                }
            }
        }
    }

    fn drop_all(&mut self) {
        for sender in self.all.values() {
            sender.is_slow.store(true, Ordering::Release);
        }
        *self = Self {
            latest: self.latest,
            ..Self::default()
        };
    }

    fn publish(&mut self, published: &Published) {
        let events: Vec<Event> = event::events(&published.changes).collect();
        self.sent = Some(published.seq);
        let mut concerned = self.broad.clone();
        let mut jobs: Vec<JobId> = events.iter().filter_map(|event| event.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        for job in jobs {
            concerned.extend(self.of_jobs.get(&job).into_iter().flatten());
        }
        for id in concerned {
            let Some(sender) = self.all.get(&id) else {
                continue;
            };
            if !sender.send(published.seq, &events) {
                sender.is_slow.store(true, Ordering::Release);
                self.remove(id);
            }
        }
    }
}

fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Change, RunnerId};

    use super::*;
    use crate::limits::{TOLD_TOPICS, TOPICS_PAUSE};

    fn published(seq: u64) -> Published {
        removal(seq, 0)
    }

    /// The commit that removes this runner.
    fn removal(seq: u64, runner: u128) -> Published {
        let runner = RunnerId::from_uuid(uuid::Uuid::from_u128(runner));
        Published {
            seq: Seq(seq),
            changes: Arc::new([Change::RunnerRemoved(runner)]),
        }
    }

    fn listen(hub: &Arc<Hub>, job: Option<JobId>) -> Listener {
        listen_to(hub, job, Form::Whole)
    }

    fn listen_to(hub: &Arc<Hub>, job: Option<JobId>, form: Form) -> Listener {
        let wanted = wanted(TokenId::from_uuid(uuid::Uuid::nil()));
        listen_as(
            hub,
            Wanted {
                job,
                form,
                ..wanted
            },
        )
    }

    /// Everything.
    fn wanted(token: TokenId) -> Wanted {
        Wanted {
            token,
            viewer: Arc::new(Viewer::admin()),
            project: None,
            workflow: None,
            job: None,
            form: Form::Whole,
        }
    }

    fn listen_as(hub: &Arc<Hub>, wanted: Wanted) -> Listener {
        let (outbox, inbox) = wanted.form.channel();
        let is_slow = Arc::new(AtomicBool::new(false));
        let id = hub.listeners().add(Sender {
            wanted: wanted.clone(),
            outbox,
            is_slow: is_slow.clone(),
        });
        Listener {
            start: Start::From(Seq(0)),
            past: None,
            place: Seq(0),
            wanted,
            inbox,
            is_slow,
            id,
            hub: hub.clone(),
        }
    }

    #[tokio::test]
    async fn one_that_does_not_keep_up_is_dropped_and_told_and_holds_nobody_up() {
        let hub = Arc::new(Hub::default());
        let (mut slow, mut quick) = (listen(&hub, None), listen(&hub, None));
        let commits = LISTENER_COMMITS as u64 + 1;
        for seq in 1..=commits {
            hub.listeners().publish(&published(seq));
            assert_eq!(quick.next().await.unwrap().seq, Seq(seq));
        }
        for seq in 1..commits {
            assert_eq!(slow.next().await.unwrap().seq, Seq(seq));
        }
        assert_eq!(slow.next().await.unwrap_err(), Dropped { is_slow: true });
        drop(quick);
        assert!(hub.listeners().all.is_empty() && hub.listeners().broad.is_empty());
    }

    #[test]
    fn one_token_leaves_room_for_others() {
        let hub = Arc::new(Hub::default());
        let token = TokenId::from_uuid(uuid::Uuid::nil());
        let other = TokenId::from_uuid(uuid::Uuid::max());
        let mut all: Vec<Listener> = (0..TOKEN_LISTENERS).map(|_| listen(&hub, None)).collect();
        let room = |token| hub.listeners().check_room(&wanted(token));
        assert_eq!(room(token), Err(TooManyListeners::Token));
        assert_eq!(room(other), Ok(()));
        all.pop();
        assert_eq!(room(token), Ok(()));
        drop(all);
        assert!(hub.listeners().of_tokens.is_empty());
    }

    #[test]
    fn a_text_is_made_once_and_nobody_is_woken_in_vain() {
        let hub = Arc::new(Hub::default());
        let mut of_job = listen(&hub, Some(JobId::FIRST));
        let mut all = [listen(&hub, None), listen(&hub, None)];
        hub.listeners().publish(&published(1));
        let texts = all.each_mut().map(|listener| {
            let batch = listener.next().now_or_never().unwrap().unwrap();
            batch.texts[0].as_ptr()
        });
        assert_eq!(texts[0], texts[1]);
        assert!(of_job.next().now_or_never().is_none());
        assert_eq!(of_job.place(), Some(Seq(1)));
        drop(of_job);
        assert!(hub.listeners().of_jobs.is_empty());
    }

    #[test]
    fn one_project_leaves_room_for_others() {
        let hub = Arc::new(Hub::default());
        let one = ProjectId::from_uuid(uuid::Uuid::nil());
        let other = ProjectId::from_uuid(uuid::Uuid::max());
        let room = |wanted: &Wanted| hub.listeners().check_room(wanted);
        let mut all = Vec::new();
        for number in 0..PROJECT_LISTENERS as u128 {
            let mut wanted = wanted(TokenId::from_uuid(uuid::Uuid::from_u128(number)));
            // Who may see one project only hears of that one alone.
            match number % 2 {
                0 => wanted.project = Some(one),
                _ => {
                    let mut viewer = Viewer::admin();
                    viewer.projects = Projects::Only([one].into());
                    wanted.viewer = Arc::new(viewer);
                }
            }
            assert_eq!(room(&wanted), Ok(()));
            all.push(listen_as(&hub, wanted));
        }
        let mut next = all[0].wanted.clone();
        next.token = TokenId::from_uuid(uuid::Uuid::max());
        assert_eq!(room(&next), Err(TooManyListeners::Project));
        next.project = Some(other);
        assert_eq!(room(&next), Ok(()));
        next.project = None;
        assert_eq!(room(&next), Ok(()), "of all projects");
        drop(all);
        assert!(hub.listeners().of_projects.is_empty());
    }

    fn text(batch: &Batch) -> &str {
        std::str::from_utf8(&batch.texts[0]).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_told_at_once_and_then_of_all_that_changed_in_a_pause() {
        let hub = Arc::new(Hub::default());
        let mut page = listen_to(&hub, None, Form::Topics);
        hub.listeners().publish(&removal(1, 1));
        let first = page.next().now_or_never().expect("nothing was told before");
        assert_eq!(first.unwrap().seq, Seq(1));
        let begun = tokio::time::Instant::now();
        for seq in 2..=50 {
            hub.listeners().publish(&removal(seq, u128::from(seq % 2)));
        }
        assert!(page.next().now_or_never().is_none());
        let second = page.next().await.unwrap();
        assert_eq!(begun.elapsed(), TOPICS_PAUSE);
        assert_eq!(second.seq, Seq(50));
        assert_eq!(text(&second).matches("runner/").count(), 2);
        assert!(page.next().now_or_never().is_none());
        // It is not dropped, however slow it is, and keeps little.
        for seq in 51..=51 + TOLD_TOPICS as u64 {
            hub.listeners().publish(&removal(seq, u128::from(seq)));
        }
        assert_eq!(
            text(&page.next().await.unwrap()),
            "event: changed\ndata: [\"*\"]\n\n"
        );
        hub.listeners().publish(&removal(2_000, 1));
        hub.listeners().drop_all();
        assert_eq!(page.next().await.unwrap().seq, Seq(2_000));
        assert_eq!(page.next().await.unwrap_err(), Dropped { is_slow: true });
    }
}
