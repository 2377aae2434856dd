//! A small proxy, as people put in front of the daemon.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// What the proxy does with the head of a request: sends it on, changed, or answers it.
pub(crate) type Rule = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// Starts a proxy in front of the daemon at `to`, until the process ends. Returns its host and port.
pub(crate) fn start(
    to: String,
    rule: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let rule: Arc<Rule> = Arc::new(rule);
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let (to, rule) = (to.clone(), rule.clone());
            // Either side may leave at any time.
            thread::spawn(move || drop(serve(caller, &to, &*rule)));
        }
    });
    address
}

/// One request for each connection.
fn serve(caller: TcpStream, to: &str, rule: &Rule) -> io::Result<()> {
    let mut back = caller.try_clone()?;
    let mut caller = BufReader::new(caller);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if caller.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.trim_end().replace("Connection: keep-alive\r\n", "");
    let head = match rule(&head) {
        Ok(head) => head,
        Err(answer) => {
            let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
            return back.write_all(format!("HTTP/1.1 {answer}\r\n{rest}").as_bytes());
        }
    };
    let mut daemon = TcpStream::connect(to)?;
    daemon.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut forth = daemon.try_clone()?;
    thread::spawn(move || {
        drop(io::copy(&mut caller, &mut forth));
        drop(forth.shutdown(Shutdown::Both));
    });
    io::copy(&mut daemon, &mut back)?;
    back.shutdown(Shutdown::Both)
}
