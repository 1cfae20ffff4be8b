//! A server of its own for a test: made in a temporary folder on a free port, ended and removed with its
//! handle, also when the test panics. PostgreSQL refuses to run as root: it is then run as nobody.

use metra_stores::postgres::Address;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// One user needs a password.
const RULES: &str =
    "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
const READY: Duration = Duration::from_secs(60);

/// A running server with the extension in the database `postgres`.
pub(crate) struct Server {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Server {
    /// Start one; none, with a message, where `METRA_POSTGRES` names no programs.
    pub(crate) fn start() -> Option<Self> {
        let what = "the bin folder of a PostgreSQL with pgvector";
        let programs = metra_testing::variable("METRA_POSTGRES", what)?;
        let server = Server::of(&programs, RULES, &[], |_| ());
        let mut client = Address::parse(&server.url()).unwrap().connect().unwrap();
        client.batch_execute("CREATE EXTENSION vector").unwrap();
        Some(server)
    }

    /// One of these programs, with rules of who may come in and further settings; `prepare` is given the
    /// folder of its data.
    pub(crate) fn of(
        programs: &str,
        rules: &str,
        settings: &[&str],
        prepare: impl Fn(&Path),
    ) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("metra-postgres-")
            .tempdir()
            .unwrap();
        let programs = reachable(Path::new(programs), folder.path());
        hand_over(folder.path());
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"), folder.path())
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        prepare(&data);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = command(&programs.join("postgres"), folder.path())
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
            .arg(folder.path())
            .args([
                "-c",
                "fsync=off",
                "-c",
                "shared_buffers=256MB",
                "-c",
                "max_wal_size=4GB",
            ])
            .args(settings)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Server {
            process,
            port,
            folder,
        };
        let began = Instant::now();
        // A refusal is an answer, too: not everybody may come in.
        while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
            assert!(began.elapsed() < READY, "{error}\n{}", server.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        while !server.log().contains("ready to accept connections") {
            assert!(began.elapsed() < READY, "{}", server.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// The address of its database.
    pub(crate) fn url(&self) -> String {
        self.url_of("postgres", "postgres")
    }

    /// The address for a user (with a password, maybe) and a database.
    pub(crate) fn url_of(&self, user: &str, database: &str) -> String {
        format!(
            "postgres://{user}@127.0.0.1:{}/{database}?connect_timeout=5",
            self.port
        )
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The fast way to stop: connections are closed, nothing is left in shared memory.
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &id]).status();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if let Ok(Some(_)) = self.process.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Give a file to whom the server runs as.
pub(crate) fn hand_over(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// A program, as nobody where we are root.
fn command(program: &Path, folder: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        let id = NOBODY.to_string();
        command
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder);
    command
}

/// Programs that nobody can start: below root's home they go along, with the libraries that they look for
/// beside their package.
fn reachable(programs: &Path, folder: &Path) -> PathBuf {
    // It needs the libraries beside the package, which `postgres --version` does without.
    let tried = command(&programs.join("initdb"), Path::new("/"))
        .arg("--version")
        .output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return programs.to_owned();
    }
    let install = programs.parent().unwrap();
    let package = install.parent().unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_os_string();
    let copy = |from: &Path, to: &Path| {
        let done = Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(to)
            .status()
            .unwrap();
        assert!(done.success(), "{} cannot be copied", from.display());
    };
    let mut libraries = name(package);
    libraries.push(".libs");
    let beside = package.with_file_name(&libraries);
    if beside.is_dir() {
        copy(&beside, folder);
    }
    let there = folder.join(name(package));
    std::fs::create_dir(&there).unwrap();
    copy(install, &there);
    there.join(name(install)).join("bin")
}
