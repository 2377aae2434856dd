//! Sessions of browsers, and signing in.

use super::headers::SET_COOKIE;
use super::operation::{does, lists, may_take, takes};
use crate::limits::SMALL_BODY;

routes! {
    Public CreateSession POST "/v0/sessions"; [], SMALL_BODY,
        takes::<wire::CreateSession, wire::Session>("Sign a browser in with an access token")
            .statuses(&[201])
            .sets(&[SET_COOKIE]);
    Public LoginPage GET "/login"; [NEXT], 0;
    Public LinkPage GET "/login/{link}"; [], 0;
    Public Login POST "/login"; [], SMALL_BODY;

    Session ListSessions GET "/v0/sessions"; [], 0,
        lists::<wire::Session>("List the signed-in browsers");
    Session EndSession DELETE "/v0/sessions/{session}"; [], 0,
        does("Sign a browser out").sets(&[SET_COOKIE]);
    Session EndSessions DELETE "/v0/sessions"; [TOKENS], 0,
        does("Sign all browsers out").sets(&[SET_COOKIE]);
    Session CreateSignInLink POST "/v0/sign-in-links"; [], SMALL_BODY,
        may_take::<wire::CreateSignInLink, wire::SignInLink>("Make a link that signs one browser in").statuses(&[201]);

    Page Settings GET "/settings"; [], 0;

    Action Logout POST "/logout"; [], SMALL_BODY;
    Action EndSession POST "/settings/sessions/{session}/end"; [], SMALL_BODY;
    Action EndSessions POST "/settings/sessions/end"; [], SMALL_BODY;
}
