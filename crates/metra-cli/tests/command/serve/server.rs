//! A server as a real process on loopback, and a client that can behave badly.

use crate::folder::Folder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running server, which is killed when its handle goes.
pub(super) struct Server {
    child: Child,
    pub(super) address: String,
    log: std::path::PathBuf,
}

impl Server {
    /// Start a server in a folder and wait until it takes requests.
    pub(super) fn start(folder: &Folder, line: &str) -> Self {
        Server::start_with(folder, line, &[])
    }

    pub(super) fn start_with(folder: &Folder, line: &str, variables: &[(&str, &str)]) -> Self {
        let log = folder.path("server.log");
        let mut command = folder.command(&format!("serve {line} --bind 127.0.0.1:0 --json"), &[]);
        let mut child = command
            .envs(variables.iter().copied())
            .arg("--verbose")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        let ready: Value = serde_json::from_str(&first).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(&log).unwrap();
            panic!("the server did not start: {first}\n{log}")
        });
        let address = ready["listening"].as_str().unwrap();
        let address = address.split("://").nth(1).unwrap().to_owned();
        Server {
            child,
            address,
            log,
        }
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    /// Send bytes as they are and read until the server closes.
    pub(super) fn raw(&self, bytes: &[u8]) -> Option<Answer> {
        let mut stream = self.connect();
        // The server may refuse a request before it has read all of it.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::read(&answer)
    }

    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        let own = [("Host", self.address.as_str())];
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        for (name, value) in own[usize::from(has_host)..].iter().chain(headers) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let bytes = [text.as_bytes(), b"\r\n", body].concat();
        self.raw(&bytes)
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        let kind = [("Content-Type", "application/json")];
        self.request("POST", path, &kind, body.to_string().as_bytes())
    }

    /// The answer to a request that must succeed.
    pub(super) fn good(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(super) fn signal(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Wait for its end.
    pub(super) fn ended(&mut self, within: Duration) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < within, "still running\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Look again and again until something holds.
    pub(super) fn until(&self, what: &str, mut holds: impl FnMut(&Server) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{what}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of the server.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        };
        Some(Answer {
            status,
            headers: lines.filter_map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        })
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The message of an error.
    pub(super) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}
