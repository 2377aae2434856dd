//! Users, members of projects, and the caller.

use super::operation::{answers, does, lists, takes};
use crate::limits::SMALL_BODY;

routes! {
    User ListUsers GET "/v0/users", Admin; [LIMIT, CURSOR], 0,
        lists::<wire::User>("List the users");
    User CreateUser POST "/v0/users", MemberWrite; [], SMALL_BODY,
        takes::<wire::CreateUser, wire::CreatedUser>("Invite a person, or make a service user").statuses(&[201]);
    User UpdateUser PATCH "/v0/users/{user}", Admin; [], SMALL_BODY,
        takes::<wire::UpdateUser, wire::User>("Activate or deactivate a user, or change who is an administrator");
    User DeleteUser DELETE "/v0/users/{user}", Admin; [], 0,
        does("Delete a user for ever");
    User CreateUserLink POST "/v0/users/{user}/link", MemberWrite; [], SMALL_BODY,
        answers::<wire::UserLink>("Make a new invitation, or a link for a new password").statuses(&[201]);
    User ListMembers GET "/v0/projects/{project}/members", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Member>("List the members of a project");
    User SetMember PUT "/v0/projects/{project}/members/{user}", MemberWrite; [], SMALL_BODY,
        takes::<wire::SetMember, wire::Member>("Give a user a role in a project");
    User RemoveMember DELETE "/v0/projects/{project}/members/{user}", MemberWrite; [], 0,
        does("Take a user's role in a project");

    Session ShowUser GET "/v0/users/{user}"; [], 0,
        answers::<wire::User>("Show a user to administrators, and to the user");
    Session ShowMe GET "/v0/me"; [], 0,
        answers::<wire::Me>("Show who sends the request");

    Page Users GET "/users", Admin; [CURSOR], 0;
    Page User GET "/users/{user}", Admin; [], 0;
    Page Members GET "/projects/{project}/members", ProjectRead; [CURSOR], 0;

    Action CreateUser POST "/users", Admin; [], SMALL_BODY;
    Action UpdateUser POST "/users/{user}", Admin; [], SMALL_BODY;
    Action CreateUserLink POST "/users/{user}/link", Admin; [], SMALL_BODY;
    Action DeleteUser POST "/users/{user}/delete", Admin; [], SMALL_BODY;
    Action SetMember POST "/projects/{project}/members", MemberWrite; [], SMALL_BODY;
    Action RemoveMember POST "/projects/{project}/members/{user}/remove", MemberWrite; [], SMALL_BODY;
}
