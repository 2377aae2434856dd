//! Users, the members of projects, and the caller.

use http::Method;
use wire::{CreateUser, CreatedUser, Me, Member, Role, SetMember, UpdateUser, User, UserLink};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// Who the daemon takes the caller for: `GET /me`.
    pub async fn me(&self) -> Result<Me, Error> {
        self.get(&Route::v0("me")).answer().await
    }

    pub async fn users(&self) -> Result<Vec<User>, Error> {
        self.all(&Route::v0("users")).await
    }

    pub async fn user(&self, name: &str) -> Result<User, Error> {
        self.get(&Route::v0("users").name(name)?).answer().await
    }

    /// Makes a user: `POST /users`. Only this answer has the invitation.
    pub async fn create_user(&self, user: &CreateUser) -> Result<CreatedUser, Error> {
        let call = self.call(Method::POST, &Route::v0("users"));
        call.json(user)?.answer().await
    }

    pub async fn update_user(&self, name: &str, update: &UpdateUser) -> Result<User, Error> {
        let route = Route::v0("users").name(name)?;
        let call = self.call(Method::PATCH, &route);
        call.json(update)?.answer().await
    }

    pub async fn delete_user(&self, name: &str) -> Result<(), Error> {
        let route = Route::v0("users").name(name)?;
        self.call(Method::DELETE, &route).done().await
    }

    /// Makes a link with which a user sets a new password: `POST /users/{user}/link`.
    pub async fn create_user_link(&self, name: &str) -> Result<UserLink, Error> {
        let route = Route::v0("users").name(name)?.then("link");
        self.call(Method::POST, &route).answer().await
    }

    pub async fn members(&self, project: &str) -> Result<Vec<Member>, Error> {
        let route = Route::v0("projects").name(project)?.then("members");
        self.all(&route).await
    }

    pub async fn set_member(&self, project: &str, user: &str, role: Role) -> Result<Member, Error> {
        let call = self.call(Method::PUT, &member(project, user)?);
        call.json(&SetMember { role })?.answer().await
    }

    pub async fn delete_member(&self, project: &str, user: &str) -> Result<(), Error> {
        let route = member(project, user)?;
        self.call(Method::DELETE, &route).done().await
    }
}

fn member(project: &str, user: &str) -> Result<Route, Error> {
    let members = Route::v0("projects").name(project)?.then("members");
    members.name(user)
}
