//! `/v0/jobs/{job}/logs/search`

use state::LogSearch;

use super::logs;
use crate::convert;
use crate::failure::Failure;
use crate::limits::{SEARCH_PAGE, SEARCHED_AT_ONCE, SEARCHED_CHARS, SEARCHED_OF_SHARE};
use crate::request::Query;
use crate::turns::Turns;
use crate::visible::{ShownJob, Visible};

/// A search occupies a thread until it has read the whole log.
static TURNS: Turns = Turns::new(SEARCHED_AT_ONCE, SEARCHED_OF_SHARE);

/// Reads which text is searched. Without `case`, a text in lower case also matches upper-case letters.
pub(crate) fn wanted(query: &Query) -> Result<LogSearch, Failure> {
    let text = text(query)?;
    let is_exact = match query.get("case") {
        Some(_) => query.flag("case")?,
        None => text.chars().any(char::is_uppercase),
    };
    Ok(LogSearch {
        text,
        ignores_case: !is_exact,
        filter: logs::filter(query)?,
        from: query.number("cursor")?.unwrap_or(0),
        limit: query.limit_of(SEARCH_PAGE)?,
    })
}

/// The records of a job's log that contain a text. Each page also has the total number of matches.
pub(crate) async fn search(
    user: &Visible,
    job: &ShownJob,
    wanted: LogSearch,
) -> Result<wire::LogMatches, Failure> {
    let _turn = TURNS.wait(user.principal().share()).await;
    Ok(convert::log_matches(user.search_log(job, wanted).await?))
}

fn text(query: &Query) -> Result<String, Failure> {
    let text = query.get("q").unwrap_or("");
    if (1..=SEARCHED_CHARS).contains(&text.chars().count()) {
        Ok(text.to_owned())
    } else {
        let problem = format!("must be a text of 1 to {SEARCHED_CHARS} characters");
        Err(Failure::invalid("q", problem))
    }
}
