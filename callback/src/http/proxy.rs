//! The PROXY protocol, version 2: a trusted proxy says who has sent a request.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// TCP over IPv4, and over IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// Reads the header that a proxy sends first. A proxy's own connection has no other sender, and keeps `peer`.
pub(crate) async fn sender<R: AsyncRead + Unpin>(
    stream: &mut R,
    peer: SocketAddr,
) -> io::Result<SocketAddr> {
    let mut signature = [0; 12];
    stream.read_exact(&mut signature).await?;
    let command = stream.read_u8().await?;
    let family = stream.read_u8().await?;
    if signature != SIGNATURE || command >> 4 != 2 {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut addresses = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut addresses).await?;
    let is_own = command & 0xf == 0;
    Ok(source(family, &addresses)
        .filter(|_| !is_own)
        .unwrap_or(peer))
}

fn source(family: u8, addresses: &[u8]) -> Option<SocketAddr> {
    // Source and destination address, then their ports.
    match family {
        TCP4 => {
            let (address, rest) = addresses.split_first_chunk::<4>()?;
            let port = rest.get(4..)?.first_chunk()?;
            Some((Ipv4Addr::from(*address), u16::from_be_bytes(*port)).into())
        }
        TCP6 => {
            let (address, rest) = addresses.split_first_chunk::<16>()?;
            let port = rest.get(16..)?.first_chunk()?;
            Some((Ipv6Addr::from(*address), u16::from_be_bytes(*port)).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(command: u8, family: u8, addresses: &[u8]) -> io::Result<SocketAddr> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        let header = [SIGNATURE, &[command, family], &length, addresses].concat();
        sender(&mut header.as_slice(), "10.0.0.1:9".parse().unwrap()).await
    }

    #[tokio::test]
    async fn the_sender_is_the_source_of_the_header() {
        let four = [192, 0, 2, 7, 198, 51, 100, 1, 0x1f, 0x90, 0, 80];
        let mut six = [0; 40];
        six[..4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
        six[15] = 7;
        six[33] = 5;
        for (command, family, addresses, expected) in [
            (0x21, TCP4, &four[..], "192.0.2.7:8080"),
            (0x21, TCP6, &six, "[2001:db8::7]:5"),
            (0x20, TCP4, &four, "10.0.0.1:9"),
            (0x21, 0, &[], "10.0.0.1:9"),
            (0x21, TCP4, &four[..9], "10.0.0.1:9"),
        ] {
            let sender = read(command, family, addresses).await.unwrap();
            assert_eq!(sender.to_string(), expected);
        }
        assert!(read(0x11, TCP4, &four).await.is_err());
        let mut other = &b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..];
        let other = sender(&mut other, "10.0.0.1:9".parse().unwrap());
        assert!(other.await.is_err());
    }
}
