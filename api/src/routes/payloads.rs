//! Payload groups and payloads.

use super::headers::{ETAG, IF_ABSENT, IF_MATCH};
use super::operation::{answers, does, lists, renders, sends, takes};
use crate::limits::{EDIT_BODY, PAYLOAD_BODY, RENDER_BODY, SMALL_BODY, VALUE_BODY};

routes! {
    User ListPayloadGroups GET "/v0/payload-groups", PayloadRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::PayloadGroup>("List the payload groups of the visible projects, or of one");
    User CreatePayloadGroup POST "/v0/payload-groups", PayloadWrite; [], VALUE_BODY,
        takes::<wire::CreatePayloadGroup, wire::PayloadGroup>("Create a payload group").statuses(&[201]);
    User ShowPayloadGroup GET "/v0/payload-groups/{group}", PayloadRead; [], 0,
        answers::<wire::PayloadGroupDetail>("Show a payload group with its payloads");
    User ChangePayloadGroup PATCH "/v0/payload-groups/{group}", PayloadWrite; [], VALUE_BODY,
        takes::<wire::ChangePayloadGroup, wire::PayloadGroup>("Change the variables of a payload group");
    User DeletePayloadGroup DELETE "/v0/payload-groups/{group}", PayloadWrite; [], 0,
        does("Delete a payload group with its payloads");
    User ReadPayload GET "/v0/payload-groups/{group}/payloads/{payload}", PayloadRead; [VERSION], 0,
        sends("Read the newest version of a payload, or another one", "text/plain").sets(&[ETAG]);
    User StorePayload PUT "/v0/payload-groups/{group}/payloads/{payload}", PayloadWrite; [], PAYLOAD_BODY,
        answers::<wire::Payload>("Store a version of a payload; an equal body makes none")
            .statuses(&[200, 201]).takes_bytes().reads(&[IF_MATCH, IF_ABSENT]).sets(&[ETAG]);
    User DeletePayload DELETE "/v0/payload-groups/{group}/payloads/{payload}", PayloadWrite; [], 0,
        does("Delete a payload with its versions").reads(&[IF_MATCH]);
    User RenderPayloads POST "/v0/payload-groups/{group}/renders", PayloadRead; [], RENDER_BODY,
        renders::<wire::RenderPayloads>("Render payloads, for each target if there are targets");

    Page PayloadGroup GET "/payload-groups/{group}", PayloadRead; [], 0;
    Page Payload GET "/payload-groups/{group}/{payload}", PayloadRead; [VERSION], 0;

    Action StorePayload POST "/payload-groups/{group}", PayloadWrite; [], EDIT_BODY;
    Action DeletePayload POST "/payload-groups/{group}/{payload}/delete", PayloadWrite; [], SMALL_BODY;
}
