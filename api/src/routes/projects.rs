//! Sources and projects, with vars and secrets.

use super::headers::{ETAG, IF_ABSENT, IF_MATCH};
use super::operation::{answers, does, lists, takes};
use crate::limits::{SMALL_BODY, VALUE_BODY};

routes! {
    User ListSources GET "/v0/sources", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Source>("List the sources");
    User ShowSource GET "/v0/sources/{source}", ProjectRead; [], 0,
        answers::<wire::Source>("Show a source with its conditions");
    User ListTips GET "/v0/sources/{source}/tips", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Tip>("List the tips of a source that the daemon saw, newest first");
    User SyncSource POST "/v0/sources/{source}/sync", ProjectWrite; [WAIT_FOR_SYNC], SMALL_BODY,
        answers::<wire::Source>("Sync a source now");
    User ApproveSource POST "/v0/sources/{source}/approve", ProjectWrite; [WAIT_FOR_SYNC], SMALL_BODY,
        takes::<wire::ApproveSource, wire::Source>("Approve a tip that retires many workflows at once");
    User ListProjects GET "/v0/projects", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Project>("List the projects");
    User ShowProject GET "/v0/projects/{project}", ProjectRead; [], 0,
        answers::<wire::Project>("Show a project with its missing vars and secrets");
    User ListVars GET "/v0/projects/{project}/vars", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Named>("List the vars of a project, without values");
    User ShowVar GET "/v0/projects/{project}/vars/{var}", ProjectRead; [], 0,
        answers::<wire::Var>("Show a var").sets(&[ETAG]);
    User SetVar PUT "/v0/projects/{project}/vars/{var}", ProjectWrite; [], VALUE_BODY,
        takes::<wire::SetValue, wire::Var>("Set a var").reads(&[IF_MATCH, IF_ABSENT]).sets(&[ETAG]);
    User DeleteVar DELETE "/v0/projects/{project}/vars/{var}", ProjectWrite; [], 0,
        does("Delete a var").reads(&[IF_MATCH]);
    User ListSecrets GET "/v0/projects/{project}/secrets", ProjectRead; [LIMIT, CURSOR], 0,
        lists::<wire::Secret>("List the secrets of a project, without values");
    User SetSecret PUT "/v0/projects/{project}/secrets/{secret}", SecretWrite; [], VALUE_BODY,
        takes::<wire::SetValue, wire::Secret>("Set a secret").reads(&[IF_MATCH, IF_ABSENT]).sets(&[ETAG]);
    User DeleteSecret DELETE "/v0/projects/{project}/secrets/{secret}", SecretWrite; [], 0,
        does("Delete a secret").reads(&[IF_MATCH]);
    User SecretMasking GET "/v0/projects/{project}/secrets/{secret}/masking", SecretWrite; [], 0,
        answers::<wire::Masking>("Show which encodings and lines of a secret are masked in logs");

    Page Sources GET "/sources", ProjectRead; [CURSOR], 0;
    Page Source GET "/sources/{source}", ProjectRead; [], 0;
    Page Projects GET "/projects", ProjectRead; [CURSOR], 0;
    Page Project GET "/projects/{project}", ProjectRead; [], 0;

    Action SyncSource POST "/sources/{source}/sync", ProjectWrite; [], SMALL_BODY;
    Action ApproveSource POST "/sources/{source}/approve", ProjectWrite; [], SMALL_BODY;
    Action SetVar POST "/projects/{project}/vars", ProjectWrite; [], VALUE_BODY;
    Action DeleteVar POST "/projects/{project}/vars/{var}/delete", ProjectWrite; [], SMALL_BODY;
    Action SetSecret POST "/projects/{project}/secrets", SecretWrite; [], VALUE_BODY;
    Action DeleteSecret POST "/projects/{project}/secrets/{secret}/delete", SecretWrite; [], SMALL_BODY;
}
