//! Devices that wait to be signed in. A device shows a short code; a person confirms it in a signed-in browser. All of it is in
//! memory only; after a restart people begin again.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chrono::TimeDelta;
use model::{Entropy, PlainToken, SessionId, Timestamp, TokenHash};
use tokio::sync::watch;

use super::SignIns;
use crate::limits::{DEVICE_LOGIN, DEVICE_LOGINS, DEVICE_LOGINS_OF_NETWORK};
use crate::supervise::lock;

/// The codes of a device that begins to sign in.
#[derive(Debug, Clone)]
pub struct NewDeviceLogin {
    /// For the device. It is shown once.
    pub device_code: PlainToken,
    /// For the person, as in `BCDF-GHJK`.
    pub user_code: String,
}

/// What a person sees before they confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingDevice {
    /// The name that the device gave itself. Anybody can claim any name.
    pub device: String,
    pub address: IpAddr,
}

/// Too many devices of this network wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyDevices;

/// The waiting devices, oldest first. Times are measured with the steady clock.
#[derive(Debug, Default)]
pub(super) struct DeviceLogins(Vec<DeviceLogin>);

#[derive(Debug)]
struct DeviceLogin {
    device_code: TokenHash,
    user_code: String,
    waiting: WaitingDevice,
    network: IpAddr,
    made_at: Timestamp,
    /// The session of the browser that confirmed.
    confirmed: watch::Sender<Option<SessionId>>,
}

/// Letters that nobody confuses, and that make no words.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

fn user_code(entropy: &mut dyn Entropy) -> String {
    let mut code = String::new();
    while code.len() < 9 {
        if code.len() == 4 {
            code.push('-');
        }
        let mut byte = [0];
        entropy.fill(&mut byte);
        // The letters above the last multiple of 20 would be more frequent.
        if byte[0] < 240 {
            code.push(char::from(LETTERS[usize::from(byte[0]) % LETTERS.len()]));
        }
    }
    code
}

/// A code as a person types it: without a dash, or in small letters.
fn normal(typed: &str) -> String {
    let letters = typed.chars().filter(char::is_ascii_alphabetic).take(9);
    let mut code: String = letters.map(|letter| letter.to_ascii_uppercase()).collect();
    if code.len() > 4 {
        code.insert(4, '-');
    }
    code
}

/// The network of somebody who has many addresses: a /24 of IPv4, or a /48 of IPv6.
fn wide(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(it) => Ipv4Addr::from_bits(it.to_bits() & !0xff).into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() & !(u128::MAX >> 48)).into(),
    }
}

impl DeviceLogins {
    /// Adds a device. If there are too many, it replaces the oldest one of the wide network that has the most, so that nobody
    /// keeps others from signing in.
    fn add(&mut self, login: DeviceLogin) -> Result<(), TooManyDevices> {
        let now = login.made_at;
        self.0.retain(|login| login.is_open(now));
        let of_network = |other: &&DeviceLogin| other.network == login.network;
        if self.0.iter().filter(of_network).count() >= DEVICE_LOGINS_OF_NETWORK {
            return Err(TooManyDevices);
        }
        if self.0.len() >= DEVICE_LOGINS {
            self.remove_one();
        }
        self.0.push(login);
        Ok(())
    }

    fn remove_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for login in &self.0 {
            *counts.entry(wide(login.network)).or_default() += 1;
        }
        let most = counts.values().max();
        let is_fullest = |login: &DeviceLogin| counts.get(&wide(login.network)) == most;
        if let Some(oldest) = self.0.iter().position(is_fullest) {
            self.0.remove(oldest);
        }
    }

    fn of_user_code(&self, typed: &str, now: Timestamp) -> Option<&DeviceLogin> {
        let code = normal(typed);
        let mut open = self.0.iter().filter(|login| login.is_open(now));
        open.find(|login| login.user_code == code && login.confirmed.borrow().is_none())
    }

    fn position(&self, device_code: &TokenHash, now: Timestamp) -> Option<usize> {
        let is_it = |login: &DeviceLogin| login.is_open(now) && login.device_code == *device_code;
        self.0.iter().position(is_it)
    }
}

impl DeviceLogin {
    fn is_open(&self, now: Timestamp) -> bool {
        (TimeDelta::zero()..DEVICE_LOGIN).contains(&(now - self.made_at))
    }
}

impl SignIns {
    /// # Errors
    /// If too many devices of this network wait.
    pub fn begin_device(
        &self,
        waiting: WaitingDevice,
        network: IpAddr,
    ) -> Result<NewDeviceLogin, TooManyDevices> {
        let mut entropy = lock(&self.entropy);
        let device_code = PlainToken::browser(&mut **entropy);
        let user_code = user_code(&mut **entropy);
        drop(entropy);
        lock(&self.devices).add(DeviceLogin {
            device_code: device_code.hash(),
            user_code: user_code.clone(),
            waiting,
            network,
            made_at: self.clock.steady(),
            confirmed: watch::Sender::new(None),
        })?;
        Ok(NewDeviceLogin {
            device_code,
            user_code,
        })
    }

    /// The device that waits with this code, as a person typed it.
    pub fn waiting_device(&self, user_code: &str) -> Option<WaitingDevice> {
        let devices = lock(&self.devices);
        let found = devices.of_user_code(user_code, self.clock.steady())?;
        Some(found.waiting.clone())
    }

    /// Lets the device sign in as the person of this session. False if none waits with this code.
    pub fn confirm_device(&self, user_code: &str, session: SessionId) -> bool {
        let devices = lock(&self.devices);
        let found = devices.of_user_code(user_code, self.clock.steady());
        found.is_some_and(|login| login.confirmed.send_replace(Some(session)).is_none())
    }

    /// Reports when somebody has confirmed the device with this code. None if no device waits with it.
    pub fn follow_device(
        &self,
        device_code: &TokenHash,
    ) -> Option<watch::Receiver<Option<SessionId>>> {
        let devices = lock(&self.devices);
        let at = devices.position(device_code, self.clock.steady())?;
        Some(devices.0[at].confirmed.subscribe())
    }

    /// The session that confirmed the device, with the device's name. If several callers race, only one gets it.
    pub fn take_device(&self, device_code: &TokenHash) -> Option<(SessionId, String)> {
        let mut devices = lock(&self.devices);
        let at = devices.position(device_code, self.clock.steady())?;
        let session = (*devices.0[at].confirmed.borrow())?;
        Some((session, devices.0.remove(at).waiting.device))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::testing::Seeded;

    fn login(n: u32, network: u8, made_at: Timestamp) -> DeviceLogin {
        login_from(n, [192, 0, 2, network].into(), made_at)
    }

    fn login_from(n: u32, network: IpAddr, made_at: Timestamp) -> DeviceLogin {
        DeviceLogin {
            device_code: TokenHash::of(&n.to_string()),
            user_code: user_code(&mut Seeded(n.into())),
            waiting: WaitingDevice {
                device: n.to_string(),
                address: network,
            },
            network,
            made_at,
            confirmed: watch::Sender::new(None),
        }
    }

    #[test]
    fn a_code_is_easy_to_type() {
        let code = user_code(&mut Seeded(1));
        let (first, second) = code.split_once('-').unwrap();
        assert_eq!((first.len(), second.len()), (4, 4), "{code}");
        assert!(
            code.bytes()
                .all(|byte| byte == b'-' || LETTERS.contains(&byte))
        );
        for typed in [
            code.to_lowercase(),
            code.replace('-', ""),
            format!(" {} ", code.replace('-', " ")),
        ] {
            assert_eq!(normal(&typed), code, "{typed}");
        }
        assert_ne!(normal(&format!("{code}B")), code);
        assert_eq!(normal("ä"), "");
    }

    #[test]
    fn a_device_waits_for_ten_minutes() {
        let now = Timestamp::UNIX_EPOCH;
        let mut devices = DeviceLogins::default();
        let (first, second) = (login(1, 1, now), login(2, 2, now + TimeDelta::seconds(1)));
        let code = first.user_code.clone();
        devices.add(first).unwrap();
        devices.add(second).unwrap();
        let last = now + DEVICE_LOGIN - TimeDelta::seconds(1);
        let found = devices.of_user_code(&code, last).unwrap();
        assert_eq!(found.waiting.device, "1");
        assert!(devices.position(&TokenHash::of("1"), last).is_some());
        let late = now + DEVICE_LOGIN;
        assert!(devices.of_user_code(&code, late).is_none());
        assert_eq!(devices.position(&TokenHash::of("1"), late), None);
        assert!(devices.position(&TokenHash::of("2"), late).is_some());
        assert!(devices.of_user_code("", now).is_none());
    }

    #[test]
    fn a_confirmed_code_is_not_shown_again() {
        let now = Timestamp::UNIX_EPOCH;
        let mut devices = DeviceLogins::default();
        let login = login(1, 1, now);
        let code = login.user_code.clone();
        let session = SessionId::from_uuid(Uuid::nil());
        login.confirmed.send_replace(Some(session));
        devices.add(login).unwrap();
        assert!(devices.of_user_code(&code, now).is_none());
    }

    #[test]
    fn devices_of_a_network_and_of_all_are_bounded() {
        let now = Timestamp::UNIX_EPOCH;
        let mut devices = DeviceLogins::default();
        let added = (0..100).filter(|n| devices.add(login(*n, 1, now)).is_ok());
        assert_eq!(added.count(), DEVICE_LOGINS_OF_NETWORK);
        let mut n = 100;
        for network in 2..=u8::MAX {
            for _ in 0..DEVICE_LOGINS_OF_NETWORK {
                n += 1;
                let _ = devices.add(login(n, network, now));
            }
        }
        assert_eq!(devices.0.len(), DEVICE_LOGINS);
        devices.add(login(0, 1, now + DEVICE_LOGIN)).unwrap();
        assert_eq!(devices.0.len(), 1, "expired ones are removed");
    }

    #[test]
    fn who_has_many_addresses_replaces_only_the_own_devices() {
        let now = Timestamp::UNIX_EPOCH;
        let mut devices = DeviceLogins::default();
        let others = [
            "192.0.2.1",
            "198.51.100.1",
            "2001:db8:1:1::",
            "2001:db8:1:2::",
        ];
        for (n, network) in (0..).zip(others) {
            let network = network.parse().unwrap();
            devices.add(login_from(n, network, now)).unwrap();
        }
        for n in 0..2_000 {
            let network = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, n, 0, 0, 0, 0);
            let login = login_from(1_000 + u32::from(n), network.into(), now);
            devices.add(login).unwrap();
        }
        assert_eq!(devices.0.len(), DEVICE_LOGINS);
        let waits = |n: u32| devices.position(&TokenHash::of(&n.to_string()), now);
        assert!((0..4).all(|n| waits(n).is_some()));
        assert_eq!((waits(1_000), waits(2_999).is_some()), (None, true));
    }
}
