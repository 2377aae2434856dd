//! What pages offer to a member depends on the role in the project of the thing.

use std::collections::BTreeMap;

use maud::Markup;
use ui::pages;
use ui::shell::{Viewer, Visit};
use wire::Scope;

use crate::PLAIN;
use crate::parsed::elements;
use crate::user_pages::members_page;
use crate::values::*;
use crate::{all, lists, more_values, payload_values};

const READ: [Scope; 3] = [Scope::WorkflowRead, Scope::JobRead, Scope::ProjectRead];

/// Reads `infra`, whose things the pages show, and may do everything in another project.
fn of_two_projects(stronger_in: &str) -> Visit {
    let all = Scope::ALL.iter().filter(|scope| **scope != Scope::Admin);
    let all: Vec<Scope> = all.copied().collect();
    let mut roles = BTreeMap::from([
        ("infra".to_owned(), READ.to_vec()),
        ("web".to_owned(), READ.to_vec()),
    ]);
    roles.insert(stronger_in.to_owned(), all.clone());
    Visit {
        viewer: Some(Viewer {
            name: "bob".to_owned(),
            scopes: all,
            roles: Some(roles),
        }),
        ..visit(PLAIN)
    }
}

fn actions(page: Markup) -> Vec<String> {
    let elements = elements(&page.into_string());
    let posts = elements
        .iter()
        .filter(|element| element.get("method") == Some("post"));
    let actions = posts.filter_map(|form| form.get("action"));
    let others = actions.filter(|action| *action != "/logout");
    others.map(str::to_owned).collect()
}

#[test]
fn a_stronger_role_elsewhere_offers_nothing_here() {
    let job = job(PLAIN, 3, wire::JobState::Running);
    let source = more_values::source(PLAIN);
    let show = |stronger_in| {
        let visit = &of_two_projects(stronger_in);
        [
            actions(all::job_page(PLAIN, visit, &job, None, &[], None)),
            actions(all::workflow_page(PLAIN, visit, false)),
            actions(pages::source(visit, &source)),
            actions(lists::variables(PLAIN, visit)),
            actions(members_page(PLAIN, visit, false)),
            payload_values::payloads(PLAIN, visit)
                .into_iter()
                .flat_map(|(_, page)| actions(page))
                .collect(),
        ]
    };
    for (elsewhere, here) in show("web").iter().zip(show("infra")) {
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
        assert!(!here.is_empty());
    }
}
