//! Sessions of browsers, and signing in.

use super::headers::SET_COOKIE;
use super::operation::{does, lists, may_take, takes, takes_only};
use crate::limits::SMALL_BODY;

routes! {
    Public CreateSession POST "/v0/sessions"; [], SMALL_BODY,
        takes::<wire::CreateSession, wire::CreatedSession>("Sign a browser or device in")
            .statuses(&[201])
            .sets(&[SET_COOKIE]);
    Public BeginDeviceLogin POST "/v0/device-logins"; [], SMALL_BODY,
        takes::<wire::CreateDeviceLogin, wire::DeviceLogin>("Let a device wait until a signed-in person confirms it")
            .statuses(&[201]);
    Public LoginPage GET "/login"; [NEXT], 0;
    Public LinkPage GET "/login/{link}"; [], 0;
    Public WelcomePage GET "/welcome/{link}"; [], 0;
    Public Login POST "/login"; [], SMALL_BODY;

    Session ListSessions GET "/v0/sessions"; [], 0,
        lists::<wire::Session>("List the signed-in browsers and devices");
    Session EndSession DELETE "/v0/sessions/{session}"; [], 0,
        does("End a session").sets(&[SET_COOKIE]);
    Session EndSessions DELETE "/v0/sessions"; [TOKENS], 0,
        does("Sign out everywhere").sets(&[SET_COOKIE]);
    Session CreateSignInLink POST "/v0/sign-in-links"; [], SMALL_BODY,
        may_take::<wire::CreateSignInLink, wire::SignInLink>("Make a link that signs one browser in").statuses(&[201]);

    Session ChangePassword PUT "/v0/me/password"; [], SMALL_BODY,
        takes_only::<wire::ChangePassword>("Set the own password").sets(&[SET_COOKIE]);

    Page Settings GET "/settings"; [], 0;
    Page Device GET "/device"; [DEVICE_CODE], 0;

    Action Logout POST "/logout"; [], SMALL_BODY;
    Action EndSession POST "/settings/sessions/{session}/end"; [], SMALL_BODY;
    Action EndSessions POST "/settings/sessions/end"; [], SMALL_BODY;
    Action ChangePassword POST "/settings/password"; [], SMALL_BODY;
    Action ConfirmDevice POST "/device"; [], SMALL_BODY;
}
