//! Notifications.

use super::operation::{does, lists, takes};
use crate::limits::VALUE_BODY;

routes! {
    User ListRules GET "/v0/rules", NotifyRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::Rule>("List the rules of notifications, of a project or of all projects and the instance");
    User SetRule PUT "/v0/rules/{rule}", NotifyWrite; [PROJECT], VALUE_BODY,
        takes::<wire::RuleDefinition, wire::Rule>("Set a rule of notifications; without a project, of the instance");
    User DeleteRule DELETE "/v0/rules/{rule}", NotifyWrite; [PROJECT], 0,
        does("Delete a rule of notifications");
}
