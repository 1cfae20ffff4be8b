//! Programs of a cluster as real processes on this machine, on free ports. Each is killed when its
//! handle goes, so that no test leaves one behind.

use metra_engine::cluster::Cluster;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time in which a program must say that it is ready; machines of tests are slow.
const READY: Duration = Duration::from_secs(60);

/// The command with arguments in one line.
pub(crate) fn metra(line: &str) -> Command {
    Host::here().metra(line)
}

/// Where programs run: on this machine as it is, or in a network namespace.
#[derive(Clone)]
pub(crate) struct Host {
    namespace: Option<String>,
    /// The address that others reach it by.
    pub(crate) address: String,
}

impl Host {
    pub(crate) fn here() -> Self {
        Host {
            namespace: None,
            address: "127.0.0.1".into(),
        }
    }

    pub(crate) fn in_namespace(name: &str, address: &str) -> Self {
        Host {
            namespace: Some(name.to_owned()),
            address: address.to_owned(),
        }
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        match &self.namespace {
            None => Command::new(program),
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, program]);
                command
            }
        }
    }

    pub(crate) fn metra(&self, line: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_metra"));
        command.args(line.split_whitespace());
        command
    }
}

/// Run a command to its end.
pub(crate) fn output(line: &str) -> Output {
    metra(line).output().unwrap()
}

/// What a command that must fail says.
pub(crate) fn refused(line: &str) -> String {
    let output = output(line);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{line}\n{error}");
    error
}

/// A running process.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
}

impl Program {
    /// Start a program; it is not waited for.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (kept, mut error) = (errors.clone(), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(count @ 1..) = error.read(&mut block) {
                let text = String::from_utf8_lossy(&block[..count]);
                kept.lock().unwrap().push_str(&text);
            }
        });
        Program {
            child,
            lines,
            errors,
        }
    }

    /// The first line on standard output.
    pub(crate) fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(READY);
        line.unwrap_or_else(|_| panic!("it says nothing on standard output:\n{}", self.errors()))
    }

    /// What it has written to standard error.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kill it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Send it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Wait for its end.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let errors = self.errors();
            assert!(begin.elapsed() < within, "still running:\n{errors}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scheduler that listens. An executor is given up after 6 s.
pub(crate) struct Scheduler {
    pub(crate) program: Program,
    /// `host:port`.
    pub(crate) address: String,
    host: Host,
}

impl Scheduler {
    pub(crate) fn start(more: &str) -> Self {
        Self::start_on(Host::here(), more)
    }

    pub(crate) fn start_on(host: Host, more: &str) -> Self {
        let mut program = Program::start(host.metra(&format!(
            "cluster scheduler --bind {}:0 --executor-timeout 6 --check-interval 2 \
             --without-executors 60 --json {more}",
            host.address
        )));
        let told: Value = serde_json::from_str(&program.line()).unwrap();
        Scheduler {
            program,
            address: told["listening"].as_str().unwrap().to_owned(),
            host,
        }
    }

    /// `df://host:port`.
    pub(crate) fn url(&self) -> String {
        format!("df://{}", self.address)
    }

    pub(crate) fn connect(&self) -> Cluster {
        Cluster::connect(&self.url()).unwrap()
    }

    /// What `metra cluster status` says.
    pub(crate) fn status(&self) -> Value {
        let line = format!("cluster status {} --json", self.url());
        let output = self.host.metra(&line).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Ask for the status until it is as wanted.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            let elapsed = begin.elapsed();
            assert!(elapsed < READY, "waited for {what}, but found {status:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// An executor that has joined. It sends a sign of life every 2 s.
pub(crate) struct Executor {
    pub(crate) program: Program,
    /// Where its results lie, in a folder that goes with this handle: a killed executor cannot
    /// remove its own.
    pub(crate) work_dir: PathBuf,
    _folder: TempDir,
}

impl Executor {
    pub(crate) fn start(scheduler: &Scheduler, more: &str) -> Self {
        Self::start_with(scheduler, more, &[])
    }

    /// With variables of the environment.
    pub(crate) fn start_with(
        scheduler: &Scheduler,
        more: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        Self::start_on(&Host::here(), scheduler, more, environment)
    }

    pub(crate) fn start_on(
        host: &Host,
        scheduler: &Scheduler,
        more: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = format!(
            "cluster executor --scheduler {} --heartbeat 2 --slots 1 --json --bind {}:0 --work-dir {} {more}",
            scheduler.address,
            host.address,
            folder.path().display()
        );
        let mut command = host.metra(&line);
        command.envs(environment.iter().copied());
        let mut program = Program::start(command);
        let told: Value = serde_json::from_str(&program.line()).unwrap();
        Executor {
            program,
            work_dir: told["work_dir"].as_str().unwrap().into(),
            _folder: folder,
        }
    }
}
