//! Expiry records, and the jobs whose artifacts expire.

use model::Job;
use model::retention::Expiry;
use store::Key;

use super::check::Check;
use super::finding::Code;
use crate::envelope;
use crate::layout::Layout;

/// A finished job with artifacts that expire must have an expiry record for the first one.
pub(super) fn check_job(check: &mut Check<'_>, job: &Job) {
    let Some(expiry) = job.expiry() else {
        return;
    };
    let key = Layout::expiry(&expiry);
    if let Ok(None) = check.look.length(&key) {
        let what = format!("an artifact of job {} runs out at {}", job.id, expiry.at);
        check.find(Code::ExpiryMissing, key, what);
    }
}

/// An expiry record must agree with its job.
pub(super) fn check_record(check: &mut Check<'_>, key: &Key, expiry: &Expiry) {
    let id = expiry.job;
    let bytes = match check.look.get(&Layout::job(id)) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return check.find(Code::ExpiryStray, key, format!("there is no job {id}")),
        // The job's own check reports it.
        Err(_) => return,
    };
    let Ok(job) = envelope::open::<Job>(&bytes) else {
        return;
    };
    if !job.state.is_terminal() || job.expiry().as_ref() != Some(expiry) {
        let what = format!("no artifact of job {id} runs out at {}", expiry.at);
        check.find(Code::ExpiryStray, key, what);
    }
}
