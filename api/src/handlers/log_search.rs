//! `/v0/jobs/{job}/logs/search`

use state::LogSearch;
use warp::reply::Response;

use super::logs;
use crate::convert;
use crate::failure::Failure;
use crate::limits::{SEARCH_PAGE, SEARCHED_AT_ONCE, SEARCHED_CHARS, SEARCHED_OF_TOKEN};
use crate::reply;
use crate::request::{Query, Request};
use crate::turns::Turns;
use crate::visible::Visible;

/// A search reads the whole log on a thread.
static TURNS: Turns = Turns::new(SEARCHED_AT_ONCE, SEARCHED_OF_TOKEN);

/// The records of a job's log whose text contains `q`. Each page has the count of all of them. Without `case`, a text
/// without upper-case letters is found in either case.
pub(super) async fn search(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_search(me, request).await?))
}

pub(crate) async fn load_search(
    me: &Visible,
    request: &Request,
) -> Result<wire::LogMatches, Failure> {
    let job = me.job_named(request.parameter(0)).await?;
    let query = &request.query;
    let text = text(query)?;
    let is_exact = match query.get("case") {
        Some(_) => query.flag("case")?,
        None => text.chars().any(char::is_uppercase),
    };
    let wanted = LogSearch {
        text,
        ignores_case: !is_exact,
        filter: logs::filter(query)?,
        from: query.number("cursor")?.unwrap_or(0),
        limit: query.limit_of(SEARCH_PAGE)?,
    };
    let _turn = TURNS.wait(me.token().id).await;
    let found = me.search_log(&job, wanted).await?;
    Ok(convert::log_matches(found))
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
