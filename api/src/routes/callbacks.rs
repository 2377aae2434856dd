//! Callback servers and interactions.

use super::operation::{answers, does, lists, takes};
use crate::limits::{SMALL_BODY, VALUE_BODY};

routes! {
    User ListCallbacks GET "/v0/callbacks", ProjectRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::Callback>("List callback servers, of a project or of all projects");
    User CheckCallbacks GET "/v0/callback-check", CallbackRead; [], 0,
        answers::<wire::CallbackCheck>("Check delegation, ports and certificate of the zones of callback servers");
    User CreateCallback POST "/v0/callbacks", CallbackWrite; [], SMALL_BODY,
        takes::<wire::CreateCallback, wire::Callback>("Create a callback server").statuses(&[201]);
    User ShowCallback GET "/v0/callbacks/{callback}", ProjectRead; [], 0,
        answers::<wire::Callback>("Show a callback server");
    User DeleteCallback DELETE "/v0/callbacks/{callback}", CallbackWrite; [], 0,
        does("Delete a callback server with its interactions");
    User ShowCallbackRules GET "/v0/callbacks/{callback}/rules", CallbackRead; [], 0,
        answers::<wire::CallbackRules>("Show the fixed answers of a callback server, and what it ignores");
    User SetCallbackRules PUT "/v0/callbacks/{callback}/rules", CallbackWrite; [], VALUE_BODY,
        takes::<wire::CallbackRules, wire::CallbackRules>("Replace the fixed answers of a callback server, and what it ignores");
    User ListCallbackTokens GET "/v0/callbacks/{callback}/tokens", CallbackRead; [LIMIT, CURSOR], 0,
        lists::<wire::CallbackToken>("List the names of a callback server that were made one by one");
    User CreateCallbackToken POST "/v0/callbacks/{callback}/tokens", CallbackWrite; [], SMALL_BODY,
        takes::<wire::CreateCallbackToken, wire::CallbackToken>("Make a name of a callback server").statuses(&[201]);
    User EndCallbackToken DELETE "/v0/callbacks/{callback}/tokens/{tag}", CallbackWrite; [], 0,
        does("End a name: it is not answered any more");
    User ListInteractions GET "/v0/callbacks/{callback}/interactions", CallbackRead;
        [TAG, JOB, TYPE, ADDRESS, OF_PAYLOAD, IN_RAW, AFTER, WAIT_FOR_HIT, RAW, INTERACTIONS, CURSOR], 0,
        lists::<wire::Interaction>("List interactions, newest first, or those after a number, oldest first");
    User ShowInteraction GET "/v0/callbacks/{callback}/interactions/{number}", CallbackRead; [], 0,
        answers::<wire::Interaction>("Show an interaction with its raw request");

    Page Callback GET "/callbacks/{callback}", CallbackRead; [TAG, JOB, TYPE, ADDRESS, OF_PAYLOAD, IN_RAW, CURSOR], 0;
    Page Interaction GET "/callbacks/{callback}/{number}", CallbackRead; [], 0;
    Action CreateCallback POST "/projects/{project}/callbacks", CallbackWrite; [], SMALL_BODY;
    Action DeleteCallback POST "/callbacks/{callback}/delete", CallbackWrite; [], SMALL_BODY;
    Action SetCallbackRules POST "/callbacks/{callback}/rules", CallbackWrite; [], VALUE_BODY;
    Action CreateCallbackToken POST "/callbacks/{callback}/tokens", CallbackWrite; [], SMALL_BODY;
    Action EndCallbackToken POST "/callbacks/{callback}/tokens/{tag}/end", CallbackWrite; [], SMALL_BODY;
}
