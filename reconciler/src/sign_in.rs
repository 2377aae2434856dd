//! The daemon's memory of people who sign in: links that sign a browser in, devices that wait, refused sign-ins, and recently
//! recorded uses of tokens and sessions. All of it is in memory only.

mod devices;
mod links;
mod refused;
mod uses;

use std::sync::{Arc, Mutex};

use model::{Clock, Entropy};
use state::State;
use tokio::sync::Notify;

use self::devices::DeviceLogins;
pub use self::devices::{NewDeviceLogin, TooManyDevices, WaitingDevice};
pub use self::links::NewSignInLink;
use self::links::SignInLinks;
use self::refused::RefusedSignIns;
use self::uses::Uses;
use crate::supervise::lock;

pub struct SignIns {
    state: State,
    clock: Arc<dyn Clock>,
    entropy: Arc<Mutex<Box<dyn Entropy>>>,
    links: Mutex<SignInLinks>,
    devices: Mutex<DeviceLogins>,
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
            devices: Mutex::default(),
            refused: Mutex::default(),
            first_refused: Notify::new(),
            uses: Mutex::default(),
        }
    }

    /// Random bytes for secrets.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        lock(&self.entropy).fill(&mut bytes);
        bytes
    }
}
