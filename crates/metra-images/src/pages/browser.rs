//! Screenshots by a headless Chromium that is installed on the machine.
//!
//! One process per screenshot, with a profile of its own that is thrown away: nothing is remembered between
//! shots, and a browser that is open is left alone. Addresses are arguments, never words of a shell, and
//! must begin with http, https or file, so that none is taken for a flag. The picture is written beside its
//! place and renamed, so that a reader never sees half of it. A browser that does not end in time is killed,
//! and its helper processes end with it.

use super::times::file_name;
use crate::{Error, Limits, Result, decode};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A program that takes screenshots as Chromium does.
#[derive(Debug, Clone)]
pub struct Browser {
    program: PathBuf,
}

/// What a screenshot is to be like.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom; what lies below is not on the picture.
    pub height: u32,
    /// Time that the page's scripts see pass before the picture is taken, if it is not taken on loading.
    pub wait: Option<Duration>,
    /// Time after which the browser is killed.
    pub timeout: Duration,
    /// Run without Chromium's sandbox, which root cannot have.
    pub no_sandbox: bool,
    /// The only hosts that the page may load from; any where none is named.
    pub hosts: Vec<String>,
    /// More flags for the browser.
    pub flags: Vec<String>,
}

impl Default for Shot {
    fn default() -> Self {
        Shot {
            width: 1280,
            height: 1024,
            wait: None,
            timeout: Duration::from_secs(60),
            no_sandbox: false,
            hosts: Vec::new(),
            flags: Vec::new(),
        }
    }
}

/// Names under which Chromium is installed.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
];

/// Always given. What they switch off would make requests or windows of its own, or move pixels.
const FLAGS: [&str; 9] = [
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
];

/// How often a running browser is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(20);

impl Browser {
    /// The named program, or the first Chromium that is found in `PATH`.
    pub fn find(named: Option<&Path>) -> Result<Self> {
        let program = match named {
            Some(path) if path.components().count() > 1 => path.is_file().then(|| path.to_owned()),
            Some(name) => in_path(name.as_os_str()),
            None => NAMES.iter().find_map(|name| in_path(OsStr::new(name))),
        };
        program.map(|program| Browser { program }).ok_or_else(|| Error::Browser {
            problem: match named {
                Some(path) => format!("expected a browser at {}, found none", path.display()),
                None => format!(
                    "expected a Chromium to take screenshots with, found none of {} in PATH: install one (on \
                     Debian apt-get install chromium) or name it",
                    NAMES.join(", ")
                ),
            },
        })
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Take a screenshot of an address into a folder. The file is named by the time in UTC, and a second
    /// shot within one second waits for the next.
    pub fn shoot(
        &self,
        address: &str,
        folder: &Path,
        shot: &Shot,
        stop: &AtomicBool,
    ) -> Result<PathBuf> {
        check_address(address)?;
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let beside = tempfile::Builder::new().prefix(".shot-").tempdir_in(folder);
        let beside = beside.map_err(|error| Error::io(folder, error))?;
        let profile = tempfile::Builder::new().prefix("metra-pages-").tempdir();
        let profile = profile.map_err(|error| Error::io(&std::env::temp_dir(), error))?;
        let picture = std::path::absolute(beside.path().join("shot.png"));
        let picture = picture.map_err(|error| Error::io(folder, error))?;
        let output = self.run(address, &picture, profile.path(), shot, stop)?;
        let failed = |what: String| Error::Browser {
            problem: format!("{}: {address}: {what}{output}", self.program.display()),
        };
        if !picture.is_file() {
            return Err(failed("expected a screenshot, found none".into()));
        }
        let found = decode::decode(&picture, Limits::default())?.dimensions();
        if found != (shot.width, shot.height) {
            let (width, height) = found;
            let expected = format!("{} × {}", shot.width, shot.height);
            return Err(failed(format!(
                "expected a screenshot of {expected} pixels, found {width} × {height}"
            )));
        }
        loop {
            let target = folder.join(format!("{}.png", file_name(SystemTime::now())));
            if !target.exists() {
                std::fs::rename(&picture, &target).map_err(|error| Error::io(&target, error))?;
                return Ok(target);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The browser with the flags that all runs share, in a group of processes of its own, so that its helpers can be
    /// ended with it; `before` are a program and its arguments that start it.
    pub(super) fn command(&self, profile: &Path, shot: &Shot, before: &[&str]) -> Result<Command> {
        let mut command = match before {
            [] => Command::new(&self.program),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&self.program);
                command
            }
        };
        command
            .args(FLAGS)
            .arg(format!("--window-size={},{}", shot.width, shot.height))
            .arg(flag("--user-data-dir=", profile));
        if shot.no_sandbox {
            command.arg("--no-sandbox");
        }
        if !shot.hosts.is_empty() {
            command.arg(host_rules(&shot.hosts)?);
        }
        command.args(&shot.flags);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        Ok(command)
    }

    /// Run to the end, and return the last line that the browser said.
    fn run(
        &self,
        address: &str,
        picture: &Path,
        profile: &Path,
        shot: &Shot,
        stop: &AtomicBool,
    ) -> Result<String> {
        let failed = |problem: String| Error::Browser {
            problem: format!("{}: {problem}", self.program.display()),
        };
        let mut command = self.command(profile, shot, &[])?;
        if let Some(wait) = shot.wait {
            command.arg(format!("--virtual-time-budget={}", wait.as_millis()));
        }
        command.arg(flag("--screenshot=", picture)).arg(address);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        // Read while it runs: a full pipe would stop the browser.
        let output = child.stderr.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // What was read until an error is what there is to say.
                let _ = pipe.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child
                .try_wait()
                .map_err(|error| failed(error.to_string()))?
            {
                break status;
            }
            let late = started.elapsed() > shot.timeout;
            if late || stop.load(Ordering::Relaxed) {
                end(&mut child);
                let seconds = shot.timeout.as_secs_f64();
                return Err(if late {
                    failed(format!(
                        "{address}: expected a screenshot within {seconds} s, found none: killed"
                    ))
                } else {
                    metra::Error::Interrupted.into()
                });
            }
            std::thread::sleep(LOOK);
        };
        // Helpers that outlive it hold its pipe open.
        end_group(&child);
        let output = output
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        // Newer versions write no picture then; older ones write that of their error page.
        if let Some((_, reason)) = output.rsplit_once("Page load failed: ") {
            let reason = reason.lines().next().unwrap_or_default();
            return Err(failed(format!(
                "{address}: expected a page, found {reason}"
            )));
        }
        let last = output.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map_or(String::new(), |line| format!("; it said: {line}"));
        if status.success() {
            return Ok(last);
        }
        let sandbox = if output.contains("no-sandbox") || output.contains("sandbox") {
            " (as root, or where the system forbids its sandbox, Chromium needs --no-sandbox)"
        } else {
            ""
        };
        Err(failed(format!(
            "{address}: ended with {status}{sandbox}{last}"
        )))
    }
}

/// Kill the browser with its helpers and wait for it, so that no process is left.
pub(super) fn end(child: &mut Child) {
    end_group(child);
    // It may have ended by itself just now.
    let _ = child.kill();
    let _ = child.wait();
}

/// Kill what is left of a browser's group of processes.
fn end_group(child: &Child) {
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        // There may be none left.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// The flag by which the browser finds no host but these.
fn host_rules(hosts: &[String]) -> Result<String> {
    let mut rules = "--host-resolver-rules=MAP * ~NOTFOUND".to_owned();
    for host in hosts {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-.:[]*".contains(c);
        if host.is_empty() || !host.chars().all(fits) {
            let problem = format!("expected the name of a host, found {host:?}");
            return Err(Error::Browser { problem });
        }
        rules.push_str(&format!(" , EXCLUDE {host}"));
    }
    Ok(rules)
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

pub(super) fn check_address(address: &str) -> Result<()> {
    let known = ["http://", "https://", "file://"];
    let begins = known
        .iter()
        .any(|start| address.len() > start.len() && address.starts_with(start));
    if begins
        && !address
            .chars()
            .any(|letter| letter.is_whitespace() || letter.is_control())
    {
        return Ok(());
    }
    Err(Error::Browser {
        problem: format!(
            "expected an address that begins with http://, https:// or file://, found {address:?}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script in the place of a browser: it finds the flag with the path and copies a picture there.
    #[cfg(unix)]
    fn script(folder: &Path, lines: &str) -> Browser {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("browser");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Browser::find(Some(&path)).unwrap()
    }

    fn small() -> Shot {
        Shot {
            width: 4,
            height: 3,
            timeout: Duration::from_secs(20),
            ..Shot::default()
        }
    }

    const COPY: &str =
        "for f in \"$@\"; do case $f in --screenshot=*) cp ${0%browser}a.png ${f#*=};; esac; done";

    #[test]
    #[cfg(unix)]
    fn a_shot_gets_the_flags_and_lands_under_its_time() {
        let folder = tempfile::tempdir().unwrap();
        crate::Picture::new(4, 3)
            .save(folder.path().join("a.png"))
            .unwrap();
        let browser = script(
            folder.path(),
            &format!("{COPY}\necho \"$*\" > ${{0%browser}}flags"),
        );
        let out = folder.path().join("out");
        let stop = AtomicBool::new(false);
        let address = "http://localhost/;touch$IFS-x?a=1&b=`id`";
        let shot = Shot {
            no_sandbox: true,
            hosts: vec!["localhost".to_owned(), "*.example.org".to_owned()],
            wait: Some(Duration::from_millis(1500)),
            ..small()
        };
        let first = browser.shoot(address, &out, &shot, &stop).unwrap();
        let second = browser.shoot(address, &out, &shot, &stop).unwrap();
        assert_ne!(first, second);
        assert!(super::super::parse_time(&first.file_name().unwrap().to_string_lossy()).is_some());
        let left: Vec<_> = std::fs::read_dir(&out)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
        let flags = std::fs::read_to_string(folder.path().join("flags")).unwrap();
        assert!(flags.trim_end().ends_with(address), "{flags}");
        for flag in [
            "--headless ",
            "--window-size=4,3 ",
            "--no-sandbox ",
            "--virtual-time-budget=1500 ",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE *.example.org ",
        ] {
            assert!(flags.contains(flag), "{flags}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn failures_are_said() {
        let folder = tempfile::tempdir().unwrap();
        crate::Picture::new(5, 3)
            .save(folder.path().join("a.png"))
            .unwrap();
        let stop = AtomicBool::new(false);
        let refused = |lines: &str, shot: &Shot, stop: &AtomicBool| {
            let browser = script(folder.path(), lines);
            browser
                .shoot("http://localhost/", folder.path(), shot, stop)
                .unwrap_err()
                .to_string()
        };
        let error = refused("echo Oh no >&2; exit 3", &small(), &stop);
        assert!(
            error.contains("exit status: 3") && error.ends_with("it said: Oh no"),
            "{error}"
        );
        assert!(refused("exit 0", &small(), &stop).contains("expected a screenshot, found none"));
        assert!(refused(COPY, &small(), &stop).contains("of 4 × 3 pixels, found 5 × 3"));
        let quick = Shot {
            timeout: Duration::from_millis(50),
            ..small()
        };
        assert!(
            refused("exec sleep 30", &quick, &stop).contains("within 0.05 s, found none: killed")
        );
        let stopped = refused("exec sleep 30", &small(), &AtomicBool::new(true));
        assert!(stopped.contains("interrupted"), "{stopped}");
        let named = Shot {
            hosts: vec!["a , EXCLUDE *".to_owned()],
            ..small()
        };
        assert!(refused("exit 0", &named, &stop).contains("the name of a host"));
    }

    #[test]
    #[cfg(unix)]
    fn helpers_do_not_outlive_the_browser() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let quick = Shot {
            timeout: Duration::from_millis(300),
            ..small()
        };
        // One browser is killed, the other ends by itself; the helper of each writes its number.
        for lines in ["exec sleep 30", "exit 0"] {
            let helper = "sleep 30 & echo $! > ${0%browser}helper";
            let browser = script(folder.path(), &format!("{helper}\n{lines}"));
            let began = Instant::now();
            let shot = browser.shoot("http://localhost/", folder.path(), &quick, &stop);
            assert!(shot.is_err() && began.elapsed() < Duration::from_secs(20));
            let helper = std::fs::read_to_string(folder.path().join("helper")).unwrap();
            let status = format!("/proc/{}/status", helper.trim());
            let gone = || {
                let status = std::fs::read_to_string(&status);
                status.map_or(true, |status| status.contains("(zombie)"))
            };
            let deadline = Instant::now() + Duration::from_secs(10);
            while !gone() && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
            assert!(gone(), "{lines}");
        }
    }

    #[test]
    fn addresses_and_programs_are_checked() {
        for address in [
            "",
            "http://",
            "--screenshot=/etc/x",
            "example.org",
            "http://a b",
            "javascript:1",
        ] {
            let error = check_address(address).unwrap_err().to_string();
            assert!(error.contains("begins with http://"), "{error}");
        }
        assert!(check_address("https://example.org/?q=1").is_ok());
        let error = Browser::find(Some(Path::new("/no/such/browser"))).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected a browser at /no/such/browser"),
            "{error}"
        );
    }
}
