//! The daemon's memory of people who sign in: links that sign a browser in, refused sign-ins, and recently recorded
//! uses of tokens and sessions. All of it is in memory only.

mod links;
mod refused;
mod uses;

use std::sync::{Arc, Mutex};

use model::{Clock, Entropy};
use state::State;
use tokio::sync::Notify;

pub use self::links::NewSignInLink;
use self::links::SignInLinks;
use self::refused::RefusedSignIns;
use self::uses::Uses;

pub struct SignIns {
    state: State,
    clock: Arc<dyn Clock>,
    entropy: Arc<Mutex<Box<dyn Entropy>>>,
    links: Mutex<SignInLinks>,
    refused: Mutex<RefusedSignIns>,
    /// Notified by the first refused sign-in of a minute.
    first_refused: Notify,
    uses: Mutex<Uses>,
}

impl SignIns {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        entropy: Arc<Mutex<Box<dyn Entropy>>>,
    ) -> Self {
        Self {
            state,
            clock,
            entropy,
            links: Mutex::default(),
            refused: Mutex::default(),
            first_refused: Notify::new(),
            uses: Mutex::default(),
        }
    }
}
