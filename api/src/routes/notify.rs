//! Notifications.

use super::headers::{ETAG, IF_ABSENT, IF_MATCH};
use super::operation::{answers, does, lists, may_take, takes, takes_only};
use crate::limits::{SMALL_BODY, VALUE_BODY};

routes! {
    User ListRules GET "/v0/rules", NotifyRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::Rule>("List the rules of notifications, of a project or of all projects and the instance");
    User SetRule PUT "/v0/rules/{rule}", NotifyWrite; [PROJECT], VALUE_BODY,
        takes::<wire::RuleDefinition, wire::Rule>("Set a rule of notifications; without a project, of the instance");
    User PreviewRule POST "/v0/rule-previews", NotifyRead; [PROJECT], VALUE_BODY,
        may_take::<wire::RuleDefinition, wire::Page<wire::PreviewedEvent>>("Show what a rule, or the rules in force, would have sent in the last week");
    User DeleteRule DELETE "/v0/rules/{rule}", NotifyWrite; [PROJECT], 0,
        does("Delete a rule of notifications");
    User ListChannels GET "/v0/channels", NotifyRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::Channel>("List the channels of notifications, of a project or of all projects and the instance");
    User ShowChannel GET "/v0/channels/{channel}", NotifyRead; [PROJECT], 0,
        answers::<wire::Channel>("Show a channel; without a project, of the instance").sets(&[ETAG]);
    User SetChannel PUT "/v0/channels/{channel}", NotifyWrite; [PROJECT], VALUE_BODY,
        takes::<wire::SetChannel, wire::Channel>("Add or change a channel; without a project, of the instance")
            .reads(&[IF_MATCH, IF_ABSENT])
            .sets(&[ETAG]);
    User DeleteChannel DELETE "/v0/channels/{channel}", NotifyWrite; [PROJECT], 0,
        does("Delete a channel").reads(&[IF_MATCH]);
    User TestChannel POST "/v0/channels/{channel}/test", NotifyWrite; [PROJECT], SMALL_BODY,
        answers::<wire::SendResult>("Send a test message and wait for its result");
    User RetryChannel POST "/v0/channels/{channel}/retry", NotifyWrite; [PROJECT], SMALL_BODY,
        takes_only::<wire::RetryChannel>("Send a failed message again, or what waits now");
    User ListDeliveries GET "/v0/deliveries", NotifyRead; [PROJECT, CHANNEL, JOB, LIMIT, CURSOR], 0,
        lists::<wire::Delivery>("List the attempts to send messages, newest first");

    Page Notifications GET "/notifications", NotifyRead; [CHANNEL, CHANNEL_KIND, RULE, CURSOR], 0;

    Action SetChannel POST "/notifications/channels", NotifyWrite; [], VALUE_BODY;
    Action TestChannel POST "/notifications/channels/{channel}/test", NotifyWrite; [PROJECT], SMALL_BODY;
    Action RetryChannel POST "/notifications/channels/{channel}/retry", NotifyWrite; [PROJECT], SMALL_BODY;
    Action DeleteChannel POST "/notifications/channels/{channel}/delete", NotifyWrite; [PROJECT], SMALL_BODY;
    Action SetRule POST "/notifications/rules", NotifyWrite; [], VALUE_BODY;
    Action DeleteRule POST "/notifications/rules/{rule}/delete", NotifyWrite; [PROJECT], SMALL_BODY;
}
