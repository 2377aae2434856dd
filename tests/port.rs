//! A port that a program is given, loses when it is killed, and must be able to take again.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Nobody who asks for any port is given this one, for as long as this lives. A program that is told its number can listen
/// there, for the socket that holds it never does; until then whoever connects is refused.
pub(crate) struct Port {
    number: u16,
    _holder: TcpSocket,
}

impl Port {
    pub(crate) fn hold() -> Self {
        let holder = TcpSocket::new_v4().unwrap();
        // Listeners of the standard library say the same, and then both may have it.
        holder.set_reuseaddr(true).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        holder.bind(any).unwrap();
        Self {
            number: holder.local_addr().unwrap().port(),
            _holder: holder,
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}
