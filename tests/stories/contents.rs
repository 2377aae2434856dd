//! Compares logs and artifacts of successful jobs, as the daemon serves them.

use client::{Client, LogQuery};
use wire::Job;

use crate::load::expected_log;
use crate::promises::Finding;

/// Compares the log and the artifacts of a job with the output of its steps. An error of the daemon is a finding.
pub(crate) async fn compare(client: &Client, job: &Job) -> Result<Vec<Finding>, client::Error> {
    let mut findings = Vec::new();
    compare_log(client, job, &mut findings).await?;
    compare_artifacts(client, job, &mut findings).await?;
    Ok(findings)
}

async fn compare_log(
    client: &Client,
    job: &Job,
    findings: &mut Vec<Finding>,
) -> Result<(), client::Error> {
    let mut log = client.logs(job.id, LogQuery::default());
    let mut found = Vec::new();
    loop {
        match log.next_record().await {
            Ok(Some(record)) => found.push(record.record.text),
            Ok(None) => break,
            // The log was removed or is unreadable, so lines are missing.
            Err(error) if error.status().is_some() => break,
            Err(error) => return Err(error),
        }
    }
    if found != expected_log(job) {
        findings.push(Finding::Torn(format!(
            "the log of job {} has {} records: {found:?}",
            job.id,
            found.len()
        )));
    }
    Ok(())
}

async fn compare_artifacts(
    client: &Client,
    job: &Job,
    findings: &mut Vec<Finding>,
) -> Result<(), client::Error> {
    let names: Vec<&str> = job.artifacts.iter().map(|found| &*found.name).collect();
    let expected: &[&str] = match job.scan.as_str() {
        "count" => &["numbers"],
        _ => &[],
    };
    if names != expected {
        findings.push(Finding::Torn(format!("job {} has {names:?}", job.id)));
    }
    for artifact in &job.artifacts {
        let mut content = Vec::new();
        match client.download_artifact(job.id, &artifact.name).await {
            Ok(mut download) => {
                while let Some(piece) = download.piece().await? {
                    content.extend_from_slice(&piece);
                }
            }
            // The artifact was removed or is unreadable, so its digest differs.
            Err(error) if error.status().is_some() => {}
            Err(error) => return Err(error),
        }
        let digest = workflow::sha256(&content);
        if artifact.removed.is_some() && content.is_empty() {
            continue;
        }
        if digest != artifact.sha256 {
            findings.push(Finding::Torn(format!(
                "artifact {} of job {} has {} bytes of {}, digest {digest}",
                artifact.name,
                job.id,
                content.len(),
                artifact.size
            )));
        }
    }
    Ok(())
}
