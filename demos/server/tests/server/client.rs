//! A client that sends what it is told, byte for byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server answered.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n\n{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

impl Answer {
    /// The value of a header, whose name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut fields = lines.filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.head, String::from_utf8_lossy(&self.body)))
    }

    /// The code of an error, whose form is checked.
    pub fn code(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        for field in ["type", "title", "detail"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        problem["code"].as_str().expect("a code").to_owned()
    }
}

/// A request.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: Vec<(&'a str, String)>,
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    pub fn get(path: &'a str) -> Self {
        Self {
            method: "GET",
            path,
            headers: Vec::new(),
            body: &[],
        }
    }

    pub fn delete(path: &'a str) -> Self {
        Self {
            method: "DELETE",
            ..Self::get(path)
        }
    }

    /// A witness.
    pub fn post(path: &'a str, body: &'a [u8]) -> Self {
        Self {
            method: "POST",
            path,
            headers: vec![("content-type", "application/octet-stream".into())],
            body,
        }
    }

    pub fn with(mut self, name: &'a str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Its head, with the length of the body.
    pub fn head(&self, address: SocketAddr) -> String {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.method == "POST" {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head + "\r\n"
    }

    /// Sends it, and waits for the answer.
    pub fn send(&self, address: SocketAddr) -> Answer {
        let bytes = [self.head(address).as_bytes(), self.body].concat();
        exchange(address, &bytes, false).expect("an answer")
    }

    /// Sends it, and leaves the answer for later.
    pub fn begin(&self, address: SocketAddr) -> TcpStream {
        let mut stream = connect(address);
        let bytes = [self.head(address).as_bytes(), self.body].concat();
        stream.write_all(&bytes).expect("a request is sent");
        stream
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends bytes, and an end behind them if there is to be one, and reads the answer; `None` for a connection that ends
/// without one.
pub fn exchange(address: SocketAddr, bytes: &[u8], has_end: bool) -> Option<Answer> {
    let mut stream = connect(address);
    // A server that refuses a request may close before it has all of it.
    let _either_way = stream.write_all(bytes);
    if has_end {
        let _either_way = stream.shutdown(std::net::Shutdown::Write);
    }
    answer_of(stream)
}

/// The answer on a connection that closes behind it.
pub fn answer_of(mut stream: TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}, after {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    let bytes = bytes.strip_prefix(&interim[..]).unwrap_or(&bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head");
    let status = head.split(' ').nth(1)?.parse().expect("a status");
    let mut answer = Answer {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
    };
    // What follows is the answer to what followed the request.
    let length = answer
        .header("content-length")
        .and_then(|length| length.parse().ok());
    answer.body.truncate(length.unwrap_or(usize::MAX));
    Some(answer)
}
