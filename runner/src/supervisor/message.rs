//! The messages between a runner and a supervisor over a socket. A request has its kind, the length of the rest, and the rest.
//! The outputs of a step come with its request, as open files. Replies have a fixed length.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [OsString],
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) folder: &'a Path,
}

#[derive(Debug)]
pub(super) enum Request {
    Start(Start),
    Stop,
    /// End all processes that the steps have left. SIGKILL follows after this time.
    Clear(Duration),
}

/// A received [`Invocation`].
#[derive(Debug)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: PathBuf,
    /// Standard output and error, unless they could not be received.
    pub(super) outputs: Vec<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// From now on, the step may have run.
    Begun,
    /// The step cannot start because of this kernel error.
    NotStarted(i32),
    Exited(Exit),
    /// The group of the step is gone. Other processes of the job may be left.
    StepGone {
        is_empty: bool,
    },
    /// All processes have ended, after this many were signalled; or some cannot be ended.
    Cleared {
        is_empty: bool,
        ended: i32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

const START: u8 = 1;
const STOP: u8 = 2;
const CLEAR: u8 = 3;

const HEAD: usize = 5;

/// Bytes received at once. Most requests are shorter.
const PIECE: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Asking(pub(super) UnixStream);

impl Asking {
    pub(super) async fn start(
        &self,
        start: &Invocation<'_>,
        outputs: [BorrowedFd<'_>; 2],
    ) -> io::Result<()> {
        let mut body = Vec::new();
        put_number(&mut body, start.arguments.len())?;
        let texts = [start.program.as_os_str(), start.folder.as_os_str()].into_iter();
        let texts = texts.chain(start.arguments.iter().map(OsString::as_os_str));
        let variables = start.environment.iter();
        let variables = variables.flat_map(|(name, value)| [name, value].map(OsString::as_os_str));
        for text in texts.chain(variables) {
            put_number(&mut body, text.len())?;
            body.extend_from_slice(text.as_bytes());
        }
        self.send(START, &body, &outputs).await
    }

    pub(super) async fn stop(&self) -> io::Result<()> {
        self.send(STOP, &[], &[]).await
    }

    pub(super) async fn clear(&self, grace: Duration) -> io::Result<()> {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.send(CLEAR, &grace.to_le_bytes(), &[]).await
    }

    async fn send(&self, kind: u8, body: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut request = vec![kind];
        put_number(&mut request, body.len())?;
        request.extend_from_slice(body);
        let mut sent = 0;
        while sent < request.len() {
            // The files are sent with the first byte.
            let files = if sent == 0 { files } else { &[] };
            let send = || send_once(&self.0, &request[sent..], files);
            sent += self.0.async_io(Interest::WRITABLE, send).await?;
        }
        Ok(())
    }

    /// The next reply. An error means that the supervisor is gone.
    pub(super) async fn reply(&mut self) -> io::Result<Reply> {
        let mut bytes = [0; Reply::BYTES];
        self.0.read_exact(&mut bytes).await?;
        Reply::parse(bytes).ok_or_else(not_understood)
    }
}

fn send_once(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let bytes = [IoSlice::new(bytes)];
    Ok(sendmsg(socket, &bytes, &mut control, SendFlags::NOSIGNAL)?)
}

fn put_number(bytes: &mut Vec<u8>, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).map_err(|_| io::ErrorKind::ArgumentListTooLong)?;
    bytes.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

fn not_understood() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message is not understood")
}

pub(super) struct Answering {
    socket: UnixStream,
    received: Vec<u8>,
    files: Vec<OwnedFd>,
}

impl Answering {
    pub(super) const fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            received: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The next request. An error means that the runner is gone. Dropping the future loses nothing.
    pub(super) async fn request(&mut self) -> io::Result<Request> {
        loop {
            if let Some(request) = self.next_received()? {
                return Ok(request);
            }
            let Self {
                socket,
                received,
                files,
            } = self;
            let receive = || receive_once(socket, received, files);
            if socket.async_io(Interest::READABLE, receive).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn next_received(&mut self) -> io::Result<Option<Request>> {
        let mut rest = &self.received[..];
        let kind = take(&mut rest, 1).and_then(|kind| kind.first().copied());
        let (Some(kind), Some(length)) = (kind, take_number(&mut rest)) else {
            return Ok(None);
        };
        let Some(body) = take(&mut rest, length) else {
            return Ok(None);
        };
        let request = match kind {
            START => parse_start(body, &mut self.files).map(Request::Start),
            STOP => Some(Request::Stop),
            CLEAR => body
                .try_into()
                .ok()
                .map(|grace| Request::Clear(Duration::from_millis(u64::from_le_bytes(grace)))),
            _ => None,
        };
        self.received.drain(..HEAD + length);
        request.ok_or_else(not_understood).map(Some)
    }

    pub(super) async fn reply(&mut self, replies: &[Reply]) -> io::Result<()> {
        let bytes: Vec<u8> = replies.iter().flat_map(|reply| reply.bytes()).collect();
        self.socket.write_all(&bytes).await
    }
}

fn receive_once(
    socket: &UnixStream,
    received: &mut Vec<u8>,
    files: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; PIECE];
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(further) = message {
            files.extend(further);
        }
    }
    received.extend_from_slice(bytes.get(..message.bytes).unwrap_or_default());
    Ok(message.bytes)
}

fn parse_start(mut body: &[u8], files: &mut Vec<OwnedFd>) -> Option<Start> {
    let count = take_number(&mut body)?;
    let mut texts = Vec::new();
    while !body.is_empty() {
        let length = take_number(&mut body)?;
        texts.push(OsStr::from_bytes(take(&mut body, length)?));
    }
    let ([program, folder], texts) = texts.split_first_chunk()?;
    let (arguments, variables) = texts.split_at_checked(count)?;
    let (variables, []) = variables.as_chunks::<2>() else {
        return None;
    };
    let own = |text: &OsStr| OsString::from_vec(text.as_bytes().to_vec());
    Some(Start {
        program: PathBuf::from(program),
        folder: PathBuf::from(folder),
        arguments: arguments.iter().map(|text| own(text)).collect(),
        environment: variables
            .iter()
            .map(|[name, value]| (own(name), own(value)))
            .collect(),
        outputs: std::mem::take(files),
    })
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    bytes.split_off(..length)
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let number = take(bytes, size_of::<u32>())?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(number)).ok()
}

impl Reply {
    const BYTES: usize = 6;

    fn bytes(self) -> [u8; Self::BYTES] {
        let (kind, flag, number) = match self {
            Self::Begun => (1, false, 0),
            Self::NotStarted(error) => (2, false, error),
            Self::Exited(Exit::Code(code)) => (3, false, code),
            Self::Exited(Exit::Signal(signal)) => (4, false, signal),
            Self::StepGone { is_empty } => (5, is_empty, 0),
            Self::Cleared { is_empty, ended } => (6, is_empty, ended),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, u8::from(flag), a, b, c, d]
    }

    fn parse([kind, flag, number @ ..]: [u8; Self::BYTES]) -> Option<Self> {
        let is_empty = flag == 1;
        let number = i32::from_le_bytes(number);
        Some(match kind {
            1 => Self::Begun,
            2 => Self::NotStarted(number),
            3 => Self::Exited(Exit::Code(number)),
            4 => Self::Exited(Exit::Signal(number)),
            5 => Self::StepGone { is_empty },
            6 => Self::Cleared {
                is_empty,
                ended: number,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[tokio::test]
    async fn requests_of_any_size_arrive_as_they_were_sent() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (asking, mut answering) = (Asking(ours), Answering::new(theirs));
        let large = OsString::from_vec(vec![0xff; 1024 * 1024]);
        let arguments = [OsString::new(), large.clone()];
        let environment = [("A".into(), "b=c".into()), ("B".into(), large)];
        let (reader, _writer) = io::pipe().unwrap();
        let invocation = Invocation {
            program: Path::new("/bin/sh"),
            arguments: &arguments,
            environment: &environment,
            folder: Path::new("/"),
        };
        let send = async {
            asking.start(&invocation, [reader.as_fd(); 2]).await?;
            asking.stop().await?;
            asking.clear(Duration::from_millis(1500)).await
        };
        let receive = async {
            let Request::Start(start) = answering.request().await? else {
                panic!("no start");
            };
            assert_eq!(start.program, invocation.program);
            assert_eq!(start.folder, invocation.folder);
            assert_eq!(start.arguments, arguments);
            assert_eq!(start.environment, environment);
            assert_eq!(start.outputs.len(), 2);
            assert!(matches!(answering.request().await?, Request::Stop));
            let clear = answering.request().await?;
            assert!(matches!(clear, Request::Clear(grace) if grace.as_millis() == 1500));
            io::Result::Ok(())
        };
        tokio::try_join!(send, receive).unwrap();
        drop(asking);
        answering.request().await.unwrap_err();
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        for reply in [
            Reply::Begun,
            Reply::NotStarted(2),
            Reply::Exited(Exit::Code(255)),
            Reply::Exited(Exit::Signal(9)),
            Reply::StepGone { is_empty: true },
            Reply::Cleared {
                is_empty: false,
                ended: 1_000,
            },
        ] {
            assert_eq!(Reply::parse(reply.bytes()), Some(reply));
        }
        assert_eq!(Reply::parse([0; Reply::BYTES]), None);
    }
}
