//! The frame of a page: its reader, its request, and what every page shows.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use http::{Method, StatusCode};
use maud::Markup;
use model::condition::Condition;
use model::{ActiveWorkflow, Principal, Rights, Scope, Timestamp, WorkflowStatus};
use ui::form::Refused;
use ui::links;
use ui::shell::{Counts, Theme, Viewer, Visit};
use uuid::Uuid;
use warp::reply::Response;
use wire::ErrorCode;

use super::html::{Made, html, see_other};
use super::typed::Typed;
use crate::convert::Convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::service::Service;
use crate::visible::Visible;

/// A request of a signed-in browser, and the state of the page around its content.
pub(super) struct Frame<'a> {
    pub(super) service: &'a Service,
    pub(super) user: &'a Visible,
    pub(super) request: &'a Request,
    pub(super) visit: Visit,
    /// The reader's rights in all projects. They decide what the page offers; each action checks the rights again.
    rights: Rights,
    /// The placeholder for the reader's name, if the page is shared by many readers.
    anybody: Option<String>,
    made: OnceLock<Made>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(service: &'a Service, user: &'a Visible, request: &'a Request) -> Self {
        let rights = user.all_rights();
        let mut visit = visit(
            Some(&(user.principal().clone(), rights.clone())),
            user.now(),
        );
        visit.counts = counts(user, &rights);
        if let Some(viewer) = &mut visit.viewer {
            viewer.name = user.name();
            viewer.roles = roles(user, &rights);
        }
        visit.answers_form = request.arrival.method == Method::POST;
        Self {
            service,
            user,
            request,
            visit,
            rights,
            anybody: None,
            made: OnceLock::new(),
        }
    }

    /// A page that is equal for all readers with the same rights.
    pub(super) fn for_many(service: &'a Service, user: &'a Visible, request: &'a Request) -> Self {
        let mut frame = Self::new(service, user, request);
        let anybody = format!("reader-{}", Uuid::new_v4().simple());
        if let Some(viewer) = &mut frame.visit.viewer {
            viewer.name.clone_from(&anybody);
        }
        frame.anybody = Some(anybody);
        frame
    }

    pub(super) fn into_made(self) -> Option<Made> {
        self.made.into_inner()
    }

    pub(super) fn may(&self, scope: Scope) -> bool {
        self.rights.scopes.allow(scope)
    }

    /// Fails without this scope. The route itself does not require the scope.
    pub(super) fn need(&self, scope: Scope) -> Result<(), Failure> {
        if self.may(scope) {
            return Ok(());
        }
        Err(Failure::without_scope(scope))
    }

    /// Sends the browser to a page after a form was accepted, or to the overview if the reader lacks the scope of the page.
    pub(super) fn done(&self, scope: Scope, address: &str) -> Response {
        see_other(match self.may(scope) {
            true => address,
            false => links::OVERVIEW,
        })
    }

    pub(super) fn parameter(&self, n: usize) -> &str {
        self.request.parameter(n)
    }

    pub(super) fn window(&self) -> Result<Window, Failure> {
        Window::of(&self.request.query)
    }

    pub(super) fn query(&self, name: &str) -> &str {
        self.request.query.get(name).unwrap_or("")
    }

    pub(super) fn page(&self, page: Markup) -> Response {
        let made = Made {
            page: Arc::from(page.into_string()),
            form_key: self.visit.form_key,
            anybody: self.anybody.clone(),
        };
        if self.anybody.is_none() {
            return made.answer(self.user, self.request);
        }
        // Each reader gets a separate answer.
        drop(self.made.set(made));
        reply::empty()
    }

    /// A page that cannot be fetched again.
    pub(super) fn html(&self, status: StatusCode, page: Markup) -> Response {
        html(&self.request.arrival.base, status, page.into_string())
    }

    /// Shows a refused form again. Returns the failure if other input could not fix it.
    pub(super) fn refused(
        &self,
        failure: Failure,
        typed: &Typed,
        fields: &[&str],
    ) -> Result<(StatusCode, Refused), Failure> {
        if failure.code == ErrorCode::SignInAgain {
            return Err(failure);
        }
        let status = match failure.status() {
            StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => return Err(failure),
            status if status.is_client_error() => status,
            StatusCode::INSUFFICIENT_STORAGE => StatusCode::INSUFFICIENT_STORAGE,
            _ => return Err(failure),
        };
        let kept = fields.iter().filter_map(|field| {
            let value = typed.all(field).collect::<Vec<_>>().join(" ");
            typed.get(field).map(|_| ((*field).to_owned(), value))
        });
        let failure = failure.seen_with(&self.rights.scopes);
        let (problem, _) = failure.problem(&self.request.arrival.id.to_string());
        let refused = Refused {
            typed: kept.collect(),
            problem: Some(problem),
        };
        Ok((status, refused))
    }
}

/// What a member may do in each project, by its name.
fn roles(user: &Visible, rights: &Rights) -> Option<BTreeMap<String, Vec<wire::Scope>>> {
    rights.roles.as_ref()?;
    user.own(|seen, _| {
        let projects = seen.sources().map(|source| {
            let scopes = scopes(|scope| rights.may(scope, source.project));
            (source.name.to_string(), scopes)
        });
        projects.collect()
    })
}

fn scopes(may: impl Fn(Scope) -> bool) -> Vec<wire::Scope> {
    let all = Scope::ALL.iter().copied();
    all.filter(|scope| may(*scope))
        .map(Convert::converted)
        .collect()
}

/// The counts of the menu and the bell, limited to what the reader may see.
fn counts(user: &Visible, rights: &Rights) -> Counts {
    let may = |scope| rights.scopes.allow(scope);
    let is_active = |it: &ActiveWorkflow| it.record.status == WorkflowStatus::Active;
    let now = user.now();
    let is_new = |open: &&Arc<Condition>| {
        open.acknowledged.is_none() && open.silenced_until.is_none_or(|until| until <= now)
    };
    let counts = user.own(|seen, _| Counts {
        workflows: match may(Scope::WorkflowRead) {
            true => seen.workflows().filter(is_active).count(),
            false => 0,
        },
        jobs: match may(Scope::JobRead) {
            true => seen.jobs().count(),
            false => 0,
        },
        runners: match may(Scope::RunnerRead) {
            true => seen.runners().filter(|it| user.is_connected(it)).count(),
            false => 0,
        },
        conditions: match may(Scope::WorkflowRead) {
            true => seen.conditions().filter(is_new).count(),
            false => 0,
        },
    });
    counts.unwrap_or_default()
}

/// The reader, as `ui` shows it.
pub(super) fn visit(reader: Option<&(Principal, Rights)>, now: Timestamp) -> Visit {
    Visit {
        viewer: reader.map(|(principal, rights)| Viewer {
            name: principal.name.clone(),
            // With the parts of each scope. The scope of administrators includes all.
            scopes: match rights.is_administrator() {
                true => vec![wire::Scope::Admin],
                false => scopes(|scope| rights.scopes.allow(scope)),
            },
            roles: None,
        }),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        theme: Theme::System,
        now,
        counts: Counts::default(),
        answers_form: false,
        form_key: Uuid::new_v4(),
    }
}
