//! Users, members, the viewer's own page, and the pages around a sign-in.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use chrono::{NaiveDate, TimeDelta};
use maud::Markup;
use ui::form::Refused;
use ui::pages::{
    self, Device, DevicePage, Members, PasswordForm, Settings, UserPage, Users, Welcome,
};
use ui::shell::Visit;
use wire::*;

use crate::more_values::{refused, session, token};
use crate::values::*;

const SERVER: &str = "https://everscan.example.org";

fn user(texts: Texts) -> User {
    User {
        name: texts.text("ada"),
        kind: UserKind::Person,
        state: UserState::Active,
        administrator: true,
        has_password: true,
        roles: BTreeMap::from([
            (texts.text("infra"), Role::Viewer),
            (texts.text("web"), Role::Maintainer),
        ]),
        created_at: ago(90_000),
        last_seen_on: NaiveDate::from_ymd_opt(2026, 9, 20),
        link_expires_at: None,
    }
}

fn invited(texts: Texts) -> User {
    let role = |number| (texts.text(&format!("project-{number}")), Role::Operator);
    User {
        name: texts.text("bob"),
        state: UserState::Invited,
        administrator: false,
        has_password: false,
        roles: (1..=7).map(role).collect(),
        last_seen_on: None,
        link_expires_at: Some(now() + TimeDelta::hours(72)),
        ..user(texts)
    }
}

fn service(texts: Texts) -> User {
    User {
        name: texts.text("deploy"),
        kind: UserKind::Service,
        administrator: false,
        has_password: false,
        roles: BTreeMap::new(),
        ..user(texts)
    }
}

fn deactivated(texts: Texts) -> User {
    User {
        name: texts.text("eve"),
        state: UserState::Deactivated,
        ..user(texts)
    }
}

fn link(texts: Texts) -> UserLink {
    UserLink {
        url_path: texts.text("/welcome/evu_secret"),
        expires_at: now() + TimeDelta::hours(24),
    }
}

pub(crate) fn members_page(texts: Texts, visit: &Visit, is_answer: bool) -> Markup {
    let member = |name: &str, kind, state, role| Member {
        user: texts.text(name),
        kind,
        state,
        role,
    };
    let (person, active) = (UserKind::Person, UserState::Active);
    let members = page(vec![
        member("ada", person, active, Role::Maintainer),
        member("bob", person, UserState::Invited, Role::Operator),
        member("deploy", UserKind::Service, active, Role::Viewer),
    ]);
    let (bob, link) = (texts.text("bob"), link(texts));
    let refused = match is_answer {
        true => refused(texts, &["name", "role"]),
        false => Refused::default(),
    };
    let page = Members {
        project: &texts.text("infra"),
        members: &members,
        invited: is_answer.then_some((&*bob, &link)),
        server: SERVER,
        refused: &refused,
    };
    pages::members(visit, &page)
}

pub(crate) fn full(texts: Texts, visit: &Visit) -> Vec<(&'static str, Markup)> {
    let stranger = &stranger(texts);
    let none = &Refused::default();
    let code = texts.text("ABCD-EFGH");
    let laptop = texts.text("laptop");
    let page_of = |user: &User, link| {
        let server = SERVER;
        pages::user(visit, &UserPage { user, link, server })
    };
    let profile = |password, refused| {
        let page = Settings {
            user: &user(texts),
            password,
            sessions: &[session(texts)],
            tokens: &[token(texts)],
            refused,
        };
        pages::settings(visit, &page)
    };
    let bare_profile = Settings {
        user: &service(texts),
        password: PasswordForm::ByLink,
        sessions: &[Session {
            token: None,
            current: false,
            ..session(texts)
        }],
        tokens: &[],
        refused: none,
    };
    let welcome = |is_invitation, refused| {
        let page = Welcome {
            user: &texts.text("bob"),
            link: &texts.text("evu_secret"),
            is_invitation,
            refused,
        };
        pages::welcome(stranger, &page)
    };
    let found = DevicePage::Found(Device {
        code: &code,
        name: &laptop,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    });
    let wrong_code = refused(texts, &["code"]);
    let long = refused(texts, &["name", "roles", "administrator"]);
    let asks = DevicePage::Asks {
        refused: &wrong_code,
    };
    let users = long_page(
        vec![
            user(texts),
            invited(texts),
            service(texts),
            deactivated(texts),
        ],
        texts,
    );
    let users = Users {
        users: &users,
        refused: &long,
    };
    vec![
        ("users", pages::users(visit, &users)),
        ("user", page_of(&user(texts), None)),
        ("user-invited", page_of(&invited(texts), Some(&link(texts)))),
        ("user-service", page_of(&service(texts), None)),
        ("user-deactivated", page_of(&deactivated(texts), None)),
        ("members", members_page(texts, visit, true)),
        ("members-none", members_page(texts, &reader(texts), false)),
        (
            "settings",
            profile(PasswordForm::Open, &refused(texts, &["password"])),
        ),
        ("settings-old", profile(PasswordForm::SignInFirst, none)),
        (
            "settings-with-token",
            profile(PasswordForm::NotWithToken, none),
        ),
        ("settings-first", profile(PasswordForm::ByLink, none)),
        ("settings-bare", pages::settings(visit, &bare_profile)),
        ("welcome", welcome(true, none)),
        ("welcome-reset", welcome(false, &refused(texts, &["again"]))),
        ("device", pages::device(visit, &asks)),
        ("device-found", pages::device(visit, &found)),
        (
            "device-confirmed",
            pages::device(visit, &DevicePage::Confirmed { name: &laptop }),
        ),
    ]
}
