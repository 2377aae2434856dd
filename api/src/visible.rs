//! The daemon as the caller of a user's route sees it. Handlers of these routes get `Visible` and no `Handle`, so they cannot
//! skip the check whether the caller may see an object.

mod blobs;
pub(crate) mod callbacks;
mod commands;
mod jobs;
pub(crate) mod payloads;
mod scans;

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use model::condition::Subject;
use model::decide::{Giver, Refusal};
use model::event::Event;
use model::outbox::DeliveryRecord;
use model::{
    Actor, BrowserSession, EventId, Guard, Job, JobId, Principal, ProjectId, Projects, Rights,
    Runner, RunnerId, Scope, Seen, Timestamp, TokenId, User, WorkflowId, World,
};
use reconciler::Handle;
use state::{AuditFilter, AuditRecord, DayPage, DayPlace, Seq, State};
use tokio::sync::watch;

use crate::events::{Form, Hub, Listener, TooManyListeners, Wanted};
use crate::failure::{Failure, job_token_over, no_such_link};
use crate::limits::{LISTENER_WAIT, LISTENERS, PROJECT_LISTENERS, RIGHTS_CHECK, SHARE_LISTENERS};
use crate::service::{CallbackChecker, Service};

/// The daemon, limited to what a caller may see and do.
#[derive(Clone)]
pub(crate) struct Visible {
    handle: Handle,
    guard: Arc<Guard>,
    events: Arc<Hub>,
    delivery: Arc<delivery::Settings>,
    callback_check: Option<Arc<dyn CallbackChecker>>,
}

/// A value that the caller may see. Commands accept only such values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown<T>(T);

impl<T> Shown<T> {
    /// A value that is derived from it.
    pub(crate) fn map<U>(&self, follow: impl FnOnce(&T) -> U) -> Shown<U> {
        Shown(follow(&self.0))
    }
}

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub(crate) type ShownJob = Shown<Arc<Job>>;

impl Visible {
    pub(crate) fn new(handle: &Handle, service: &Service, guard: Guard) -> Self {
        let guard = Arc::new(guard);
        Self {
            handle: handle.guarded(guard.clone()),
            guard,
            events: service.events.clone(),
            delivery: service.delivery.clone(),
            callback_check: service.callback_check.clone(),
        }
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.guard.by
    }

    /// What the caller may do now, in the projects in which the caller has the scope of the request. Commands and streams check
    /// the credential themselves.
    pub(crate) fn rights(&self) -> Rights {
        self.state().read(|world| self.rights_in(world))
    }

    /// The same, while the world is read.
    fn rights_in(&self, world: &World) -> Rights {
        self.guard.rights(world, self.handle.time(world))
    }

    /// What the caller may do now in all projects, for what a page offers besides its content.
    pub(crate) fn all_rights(&self) -> Rights {
        let state = self.state();
        state.read(|world| self.guard.all_rights(world, self.handle.time(world)))
    }

    /// Checks that the caller still has the rights with which the request began. Bodies, waits and streams may take hours.
    fn check(&self, world: &World) -> Result<(), Failure> {
        let checked = self.guard.check(world, self.handle.time(world));
        checked.map_err(|refusal| match refusal {
            _ if self.principal().is_link() => no_such_link(),
            Refusal::NoRights if self.principal().job().is_some() => job_token_over(),
            refusal => Failure::from(refusal),
        })
    }

    /// The sessions that the caller may end, the oldest first.
    pub(crate) fn signed_in(&self) -> Vec<Arc<BrowserSession>> {
        let only = self.only_sessions_with();
        self.handle.state().read(|world| {
            let user = self.principal().user().into_iter();
            let sessions = user.flat_map(|it| world.signed_in(it, self.handle.time(world)));
            let is_shown = |it: &&Arc<BrowserSession>| {
                only.is_none() || it.with.map(|with| with.token) == only
            };
            sessions.filter(is_shown).cloned().collect()
        })
    }

    /// What `show` makes of these sessions, the newest first.
    pub(crate) fn sessions<T>(&self, show: impl Fn(&World, &BrowserSession) -> T) -> Vec<T> {
        let sessions = self.signed_in();
        self.state().read(|world| {
            let sessions = sessions.iter().rev();
            sessions.map(|session| show(world, session)).collect()
        })
    }

    /// The token whose sessions are all that the caller may see and end. None for a person, and for a token that may do whatever
    /// its owner may: no session of the user is stronger.
    pub(super) fn only_sessions_with(&self) -> Option<TokenId> {
        let token = self.principal().token()?;
        let may_all = |world: &World| {
            let token = world.token(token)?;
            Some(token.scopes.allow(Scope::Admin) && token.projects.is_all())
        };
        (self.state().read(may_all) != Some(true)).then_some(token)
    }

    /// The name of the user.
    pub(crate) fn name(&self) -> String {
        self.own(|_, own| own.name.to_string()).unwrap_or_default()
    }

    pub(crate) fn actor(&self) -> Actor {
        self.principal().actor()
    }

    pub(crate) async fn stopping(&self) {
        self.handle.stopping().await;
    }

    /// Waits until the caller has lost rights. A stream ends then.
    pub(crate) async fn rights_lost(&self) -> Failure {
        // The credential of a job ends with the job. Other links of a project end by themselves.
        let mut changed = match (self.principal().job(), self.principal().user()) {
            (Some(job), _) => self.state().job_changed(job),
            (None, Some(user)) => self.state().user_changed(user),
            (None, None) => self.state().changed(),
        };
        loop {
            changed.mark_unchanged();
            let life = self.state().read(|world| {
                self.check(world)?;
                let end = self.principal().ends_at(world);
                Ok::<_, Failure>(end.and_then(|end| (end - self.handle.time(world)).to_std().ok()))
            });
            let life = match life {
                Ok(life) => life,
                Err(failure) => return failure,
            };
            // Check again at least this often: the steady clock may be adjusted, or the machine may sleep meanwhile.
            let life = life.map_or(RIGHTS_CHECK, |life| life.min(RIGHTS_CHECK));
            tokio::select! {
                Ok(()) = changed.changed() => {}
                () = tokio::time::sleep(life) => {}
            }
        }
    }
}

impl Visible {
    fn state(&self) -> &State {
        self.handle.state()
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(Seen<'_>) -> R) -> R {
        self.state()
            .read(|world| look(world.seen_by(&self.rights_in(world))))
    }

    pub(crate) fn find<T>(
        &self,
        look: impl FnOnce(Seen<'_>) -> Result<T, Failure>,
    ) -> Result<Shown<T>, Failure> {
        self.read(look).map(Shown)
    }

    /// What the caller lacks in the project that `look` finds, if the caller sees it, but may not do this there. Without it, the
    /// answer would be that nothing is there.
    pub(crate) fn without_role(
        &self,
        look: impl FnOnce(Seen<'_>) -> Option<ProjectId>,
    ) -> Option<Failure> {
        self.state().read(|world| {
            let now = self.handle.time(world);
            let project = look(world.seen_by(&self.guard.all_rights(world, now)))?;
            let scope = self.guard.lacks(project, world, now)?;
            Some(Failure::without_role(scope))
        })
    }

    /// What `look` makes of the caller's own user.
    pub(crate) fn own<R>(&self, look: impl FnOnce(Seen<'_>, &User) -> R) -> Option<R> {
        self.state().read(|world| {
            let own = world.user(self.principal().user()?)?;
            Some(look(
                world.seen_by(&self.guard.all_rights(world, self.handle.time(world))),
                own,
            ))
        })
    }

    /// Who gives roles and makes users in this request.
    pub(crate) fn giver(&self) -> Result<Giver, Failure> {
        Ok(Giver {
            user: self.own_user()?,
            rights: self.rights(),
            token: self.principal().token(),
        })
    }

    /// When the caller's credential ends.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        self.state().read(|world| self.principal().ends_at(world))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.handle.now()
    }

    /// The steady time, with which times of expiry are compared.
    pub(crate) fn steady(&self) -> Timestamp {
        self.handle.steady()
    }

    /// Listens to events, from now on or from the commit after `after`.
    pub(crate) fn listen(
        &self,
        project: Option<ProjectId>,
        workflow: Option<WorkflowId>,
        job: Option<JobId>,
        form: Form,
        after: Option<Seq>,
    ) -> Result<Listener, Failure> {
        let of_rights = match self.rights().projects {
            Projects::Only(projects) if projects.len() == 1 => projects.first().copied(),
            Projects::Only(_) | Projects::All => None,
        };
        let wanted = Wanted {
            principal: Arc::new(self.principal().clone()),
            only_project: project.or(of_rights),
            project,
            workflow,
            job,
            form,
        };
        let listener = self.events.listen(&self.handle, wanted, after);
        listener.map_err(|error| {
            let problem = match error {
                TooManyListeners::Share => {
                    format!("you have {SHARE_LISTENERS} open event streams, which is the maximum")
                }
                TooManyListeners::Project => {
                    format!("{PROJECT_LISTENERS} listeners are limited to this project, which is the maximum")
                }
                TooManyListeners::All => {
                    format!("there are {LISTENERS} listeners to events, which is the maximum")
                }
            };
            Failure::rate_limited(&problem, LISTENER_WAIT)
                .hint("one stream serves all tabs of a browser; close streams that are not read")
        })
    }

    /// Wakes after every change, even if the caller does not see it.
    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.state().changed()
    }

    /// Converts a steady time to the wall clock.
    pub(crate) fn by_the_clock(&self, end: Timestamp) -> Timestamp {
        self.handle.by_the_clock(end)
    }

    pub(crate) async fn audit(
        &self,
        filter: &AuditFilter,
        from: Option<DayPlace>,
        limit: usize,
    ) -> Result<DayPage<AuditRecord>, Failure> {
        Ok(self.state().audit(filter, from, limit).await?)
    }

    /// Lines of the delivery log, newest first, of channels that the caller sees.
    pub(crate) async fn deliveries(
        &self,
        span: (Option<Timestamp>, Option<Timestamp>),
        takes: impl Fn(&DeliveryRecord) -> bool,
        from: Option<DayPlace>,
        limit: usize,
    ) -> Result<DayPage<DeliveryRecord>, Failure> {
        let takes = |record: &DeliveryRecord| {
            takes(record) && self.read(|seen| seen.sees_channel_of(record.project))
        };
        let state = self.state();
        Ok(state.deliveries(span, takes, from, limit).await?)
    }

    /// The events with these ids, which happened in this time, oldest first.
    pub(crate) async fn events_named(
        &self,
        span: (Timestamp, Timestamp),
        ids: &[EventId],
    ) -> Result<Vec<Event>, Failure> {
        let takes = |event: &Event| ids.contains(&event.id);
        let span = (Some(span.0), Some(span.1));
        let mut events = self.state().events(span, takes, ids.len()).await?;
        events.reverse();
        Ok(events)
    }

    /// What `show` makes of the newest events since a time that the caller sees.
    pub(crate) async fn past_events<T>(
        &self,
        since: Timestamp,
        limit: usize,
        show: impl Fn(&World, &Event) -> Vec<T>,
    ) -> Result<Vec<T>, Failure> {
        let rights = self.rights();
        let sees = |event: &Event| {
            let may = |scope| match event.project {
                Some(project) => rights.may(scope, project),
                None => rights.scopes.allow(scope),
            };
            may(event.subject.scope()) && (event.what.job().is_none() || may(Scope::JobRead))
        };
        // Only callers who see all projects get the events of removed runners.
        let sees_runner = |world: &World, event: &Event| match &event.subject {
            Subject::Runner { runner } => world
                .runner(*runner)
                .map_or(rights.projects.is_all(), |it| it.is_seen_by(&rights)),
            _ => true,
        };
        let state = self.state();
        let takes = |event: &Event| {
            sees(event)
                && state.read(|world| sees_runner(world, event) && !show(world, event).is_empty())
        };
        let events = state.events((Some(since), None), takes, limit).await?;
        let shown = state.read(|world| {
            let shown = events.iter().flat_map(|event| show(world, event));
            shown.take(limit).collect()
        });
        Ok(shown)
    }

    pub(crate) fn is_connected(&self, runner: &Runner) -> bool {
        self.handle.runners().is_connected(runner.id)
    }

    /// The jobs that each runner holds, by its newest poll.
    pub(crate) fn jobs_in_hand(&self) -> Arc<HashMap<RunnerId, BTreeSet<JobId>>> {
        self.handle.runners().jobs_in_hand()
    }

    pub(crate) fn heard_at(&self, runner: &Runner) -> Option<Timestamp> {
        self.handle.runners().heard_at(runner.id)
    }
}
