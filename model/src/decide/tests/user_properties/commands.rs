//! The commands of acts.

use serde_json::json;

use super::action::What;
use super::known::Person;
use super::{Act, Story, projects, vault};
use crate::decide::{
    Command, CreateRegistration, CreateUser, DeleteUser, Dispatch, Giver, Maker, Precondition,
    Refusal, SetMember, SetVar, Suspend, UpdateUser,
};
use crate::testing::source;
use crate::{Rights, Role, UserId, WorkflowId};

impl Story {
    pub(super) fn decide(&mut self, act: &Act, rights: Rights) -> Result<(), Refusal> {
        let actor = act.guard.by.actor();
        let workflow = match act.at == projects()[0] {
            true => WorkflowId::derive(&source(), "nightly"),
            false => WorkflowId::derive(&vault(), "nightly"),
        };
        let by = || Giver {
            user: act.guard.by.user().unwrap_or(UserId::OWNER),
            rights: rights.clone(),
            token: act.guard.by.token(),
        };
        let role = [
            None,
            Some(Role::Viewer),
            Some(Role::Operator),
            Some(Role::Maintainer),
        ];
        let role = role[usize::from(act.role % 4)];
        match act.what {
            What::Dispatch => {
                let command = self.test.dispatch_of(workflow, "probe", json!({}))?;
                self.run(Dispatch { actor, ..command })
            }
            What::Suspend => self.run(Suspend {
                workflow,
                scan: Some("strict".to_owned()),
                reason: "a test".to_owned(),
                actor,
            }),
            What::SetVar => self.run(SetVar {
                project: act.at,
                name: "URL".to_owned(),
                value: self.accepted.to_string(),
                actor,
                expects: Precondition::Anything,
            }),
            What::Register => {
                let maker = Maker {
                    token: act.guard.by.token(),
                    user: by().user,
                    rights: rights.clone(),
                };
                self.run(CreateRegistration {
                    projects: Some([act.at].into()),
                    labels: None,
                    maker: Some(maker),
                })
            }
            What::Invite => {
                self.names += 1;
                let made = self.test.run(CreateUser {
                    name: format!("u{}", self.names).parse().unwrap(),
                    is_service: false,
                    is_administrator: false,
                    roles: role.map(|role| (act.at, role)).into_iter().collect(),
                    by: by(),
                })?;
                let person = Person {
                    roles: made.user.roles.clone().into(),
                    ..Person::default()
                };
                self.known.users.insert(made.user.id, person);
                let link = made.secret.unwrap();
                self.links.push((made.user.id, by().user, link));
                Ok(())
            }
            What::SetMember => {
                let (user, project) = (act.whom, act.at);
                self.test.run(SetMember {
                    user,
                    project,
                    role,
                    by: by(),
                })?;
                let roles = &mut self.known.users.get_mut(&user).unwrap().roles;
                match role {
                    Some(role) => roles.insert(project, role),
                    None => roles.remove(&project),
                };
                Ok(())
            }
            What::Activate(active) => self.update(act.whom, Some(active), None),
            What::Promote(promoted) => self.update(act.whom, None, Some(promoted)),
            What::Delete => {
                while self.test.run(DeleteUser { user: act.whom })?.is_unfinished {}
                let person = self.known.users.get_mut(&act.whom).unwrap();
                *person = Person {
                    signed_out: person.signed_out + 1,
                    ..Person::default()
                };
                self.known.end_all_of(act.whom);
                Ok(())
            }
        }
    }

    fn run<C: Command>(&mut self, command: C) -> Result<(), Refusal> {
        self.test.run(command).map(drop)
    }

    fn update(
        &mut self,
        user: UserId,
        active: Option<bool>,
        administrator: Option<bool>,
    ) -> Result<(), Refusal> {
        let update = UpdateUser {
            user,
            active,
            administrator,
        };
        while self.test.run(update.clone())?.is_unfinished {}
        let is_owner = user == UserId::OWNER;
        let person = self.known.users.get_mut(&user).unwrap();
        person.is_administrator = administrator.unwrap_or(person.is_administrator);
        match active {
            // Whoever has no password is only invited again, except the owner.
            Some(true) => person.is_active |= person.has_password || is_owner,
            Some(false) => {
                person.is_active = false;
                person.signed_out += 1;
                self.known.end_all_of(user);
            }
            None => {}
        }
        Ok(())
    }
}
