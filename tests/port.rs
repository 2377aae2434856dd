//! Reserves a port for a program that is killed and started again.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A reserved port. While the value lives, the system gives the port to nobody who asks for any port. A program that
/// knows the number can listen on it, because the reserving socket never listens. Until then connections are refused.
pub(crate) struct Port {
    number: u16,
    _holder: TcpSocket,
}

impl Port {
    pub(crate) fn hold() -> Self {
        let holder = TcpSocket::new_v4().unwrap();
        // The standard library's listeners also set this option; both sockets need it.
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
