//! Pages that scripts fetch again: rendered once for all readers with the same rights, and not more often than is useful.
//!
//! While jobs start and end, every open page is fetched again and again. A script that can wait (`Prefer: wait`) gets a page
//! whose rendering begins after its request. All requests for this page that arrive before the rendering begins share it. A slow
//! page is rendered less often, so that readers cannot slow down jobs.

use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use http::header::HeaderName;
use model::Rights;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::html::Made;
use crate::failure::Failure;
use crate::limits::{LONGEST_RENEWAL_PAUSE, RENEWAL_PAUSE, RENEWAL_SHARE, RENEWALS};
use crate::request::Request;

/// The key of a shared page: its address, and the rights of its readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Same {
    path: String,
    query: Vec<(String, String)>,
    rights: Rights,
}

#[derive(Default)]
pub(crate) struct Renewals(SyncMutex<Vec<Known>>);

struct Known {
    same: Same,
    page: Arc<Page>,
    used: Instant,
}

/// One page for all readers with the same rights. The holder of the lock renders it; the others wait and share it.
type Page = Mutex<Option<Last>>;

struct Last {
    begun: Instant,
    took: Duration,
    /// None once all waiting readers have it.
    made: Option<Made>,
}

/// A response that must not be shared: an error, or a page for one reader.
pub(super) type Unshared = Result<warp::reply::Response, Failure>;

impl Same {
    pub(super) fn of(request: &Request, rights: Rights) -> Self {
        Self {
            path: request.arrival.path.clone(),
            query: request.query.pairs().to_vec(),
            rights,
        }
    }
}

pub(super) fn can_wait(request: &Request) -> bool {
    let prefer = request.header(HeaderName::from_static("prefer"));
    prefer.is_some_and(|prefer| prefer.trim_start().starts_with("wait="))
}

impl Renewals {
    /// The page, rendered after the request arrived: by `make`, or by the `make` of another reader.
    pub(super) async fn page<F>(
        &self,
        same: Same,
        make: impl FnOnce() -> F,
    ) -> Result<Made, Unshared>
    where
        F: Future<Output = Result<Made, Unshared>>,
    {
        let arrived = Instant::now();
        let page = self.find(same, arrived);
        let mut last = page.lock().await;
        if let Some(last) = &mut *last {
            if last.begun > arrived
                && let Some(made) = &last.made
            {
                let made = made.clone();
                if is_last(&page) {
                    last.made = None;
                }
                return Ok(made);
            }
            sleep_until(last.begun + last.pause()).await;
        }
        let begun = Instant::now();
        let made = make().await;
        *last = made.as_ref().ok().map(|made| Last {
            begun,
            took: begun.elapsed(),
            made: (!is_last(&page)).then(|| made.clone()),
        });
        made
    }

    /// Finds or adds the entry of a page. Entries without a recent use are removed.
    fn find(&self, same: Same, now: Instant) -> Arc<Page> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| {
            Arc::strong_count(&known.page) > 1 || now < known.used + LONGEST_RENEWAL_PAUSE
        });
        if let Some(known) = all.iter_mut().find(|known| known.same == same) {
            known.used = now;
            return known.page.clone();
        }
        let page = Arc::<Page>::default();
        // If too many pages are open, further pages are not shared.
        if all.len() < RENEWALS {
            all.push(Known {
                same,
                page: page.clone(),
                used: now,
            });
        }
        page
    }
}

/// True if only the caller and the list hold the page.
fn is_last(page: &Arc<Page>) -> bool {
    Arc::strong_count(page) <= 2
}

impl Last {
    fn pause(&self) -> Duration {
        let pause = self.took.saturating_mul(RENEWAL_SHARE);
        pause.clamp(RENEWAL_PAUSE, LONGEST_RENEWAL_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::sleep;

    use super::*;

    const TOOK: Duration = Duration::from_millis(10);

    fn same(path: &str, rights: Rights) -> Same {
        Same {
            path: path.to_owned(),
            query: Vec::new(),
            rights,
        }
    }

    /// Asks for a page, and counts the renderings. Returns the number of this rendering.
    async fn ask(renewals: &Renewals, same: Same, count: &Cell<u32>) -> String {
        let make = async || {
            count.set(count.get() + 1);
            sleep(TOOK).await;
            Ok(Made::of(&count.get().to_string()))
        };
        match renewals.page(same, make).await {
            Ok(made) => made.text().to_owned(),
            Err(_) => panic!("no page was made"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_readers_share_a_page_that_was_begun_after_their_requests() {
        let (renewals, count) = (Renewals::default(), Cell::new(0));
        let jobs = || same("/jobs", Rights::admin());
        let asked = || ask(&renewals, jobs(), &count);
        let begun = Instant::now();
        // The first page is begun before the other requests arrive.
        let (first, second, third) = tokio::join!(asked(), asked(), asked());
        assert_eq!([first, second, third], ["1", "2", "2"]);
        assert_eq!(begun.elapsed(), TOOK * RENEWAL_SHARE + TOOK);
        assert_eq!(asked().await, "3");
        let kept = renewals.0.lock().unwrap();
        let last = kept[0].page.try_lock().unwrap();
        assert!(
            last.as_ref().unwrap().made.is_none(),
            "the page is dropped when nobody waits for it"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn other_pages_and_other_rights_do_not_wait() {
        let (renewals, count) = (Renewals::default(), Cell::new(0));
        let (begun, none) = (
            Instant::now(),
            Rights {
                scopes: [].into_iter().collect(),
                ..Rights::admin()
            },
        );
        ask(&renewals, same("/jobs", Rights::admin()), &count).await;
        ask(&renewals, same("/", Rights::admin()), &count).await;
        ask(&renewals, same("/jobs", none), &count).await;
        assert_eq!(begun.elapsed(), TOOK * 3);
        sleep(LONGEST_RENEWAL_PAUSE).await;
        ask(&renewals, same("/runners", Rights::admin()), &count).await;
        assert_eq!(
            renewals.0.lock().unwrap().len(),
            1,
            "unused pages are forgotten"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn if_a_reader_leaves_the_next_reader_makes_the_page_and_refusals_are_not_shared() {
        let (renewals, count) = (Renewals::default(), Cell::new(0));
        let jobs = || same("/jobs", Rights::admin());
        let gone = ask(&renewals, jobs(), &count);
        let next = ask(&renewals, jobs(), &count);
        let gone = async {
            tokio::select! {
                _ = gone => panic!("the request was not dropped"),
                () = sleep(TOOK / 2) => {}
            }
        };
        let ((), next) = tokio::join!(gone, next);
        assert_eq!(next, "2");
        let refuse = async || Err(Err(Failure::defect()));
        assert!(renewals.page(jobs(), refuse).await.is_err());
        let begun = Instant::now();
        ask(&renewals, jobs(), &count).await;
        assert_eq!(begun.elapsed(), TOOK);
    }
}
