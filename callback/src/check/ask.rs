//! One question to a server of others, over UDP, and over TCP if the answer is too long.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_proto::op::Edns;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::{Message, Name, Query, RecordType, timeout};
use crate::limits::{ASK, ASK_TIMES, UDP_ANSWER};

pub(super) async fn ask(
    server: SocketAddr,
    name: &Name,
    kind: RecordType,
    is_recursive: bool,
) -> Result<Message, String> {
    let mut question = Message::query();
    question.metadata.recursion_desired = is_recursive;
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_ANSWER as u16);
    question.set_edns(edns);
    question.add_query(Query::query(name.clone(), kind));
    let bytes = question.to_vec().map_err(|error| error.to_string())?;
    let mut problem = None;
    for _ in 0..ASK_TIMES {
        match timeout(ASK, exchange(server, &bytes, question.metadata.id)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => problem = Some(error.to_string()),
            Err(_) => problem = None,
        }
    }
    let problem = problem.unwrap_or_else(|| "no answer".to_owned());
    Err(format!(
        "{server} was asked for {kind} of {name}: {problem}"
    ))
}

async fn exchange(server: SocketAddr, question: &[u8], id: u16) -> io::Result<Message> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut bytes = vec![0; u16::MAX.into()];
    let answer = loop {
        let length = socket.recv(&mut bytes).await?;
        // Others may forge answers.
        if let Some(answer) = read(&bytes[..length], id) {
            break answer;
        }
    };
    if !answer.metadata.truncation {
        return Ok(answer);
    }
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
    let framed = [&length.to_be_bytes(), question].concat();
    stream.write_all(&framed).await?;
    let mut bytes = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut bytes).await?;
    read(&bytes, id).ok_or_else(|| io::Error::other("the answer over TCP is unreadable"))
}

fn read(bytes: &[u8], id: u16) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok();
    answer.filter(|answer| answer.metadata.id == id)
}
