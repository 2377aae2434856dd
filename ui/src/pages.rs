//! The pages. Each is a function from values of `wire` to a whole page.

mod about;
mod artifacts;
mod audit;
mod blobs;
mod callbacks;
mod dispatch;
mod feed;
mod job;
mod job_context;
mod job_log;
mod jobs;
mod ledger;
mod login;
mod members;
mod notifications;
mod notify_forms;
mod overview;
mod payloads;
mod revisions;
mod runners;
mod scan;
mod settings;
mod sources;
mod suspension;
mod tokens;
mod users;
mod variables;
mod workflow;
mod workflows;

pub use about::{About, Disk, about};
pub use artifacts::{ArtifactEntries, artifact_diff, artifact_entries, artifacts};
pub use audit::{Audit, audit};
pub use blobs::{Blobs, blobs};
pub use callbacks::{CallbackPage, Heard, callback, interaction};
pub use dispatch::{Dispatch, dispatch};
pub use feed::Past;
pub use job::{Declared, DeclaredStep, JobPage, job};
pub use job_context::job_context;
pub use job_log::{LogPage, job_log};
pub use jobs::{JobFilter, Jobs, jobs};
pub use login::{
    Device, DevicePage, Login, SignInLink, Welcome, device, login, sign_in_link, welcome,
};
pub use members::{Members, members};
pub use notifications::{Answered, Notifications, notifications};
pub use overview::{Overview, Unfinished, overview};
pub use payloads::{
    Draft, EDITED_BYTES, PayloadPage, Previewed, edited_payload, payload, payload_group,
};
pub use revisions::{RevisionPage, revision, revisions};
pub use runners::{RunnerPage, Runners, runner, runners};
pub use scan::{ScanPage, scan};
pub use settings::{PasswordForm, Settings, settings};
pub use sources::{source, sources};
pub use tokens::{Tokens, tokens};
pub use users::{UserPage, Users, user, users};
pub use variables::{Variables, projects, variables};
pub use workflow::{Lanes, ScanPast, WorkflowPage, workflow};
pub use workflows::{EXAMPLE, WorkflowRow, workflows};
