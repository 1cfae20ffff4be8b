//! `cargo xtask dist`: what a release consists of, made from the commit that is checked out.
//!
//! Programs are linked by zig against the oldest C library that Rust supports, so that they run on every Linux that has it;
//! archives and Debian packages hold them with licences, notices of third parties, a list of parts, manual pages and
//! completions. The Python package is built the same way. Two runs at one commit give the same bytes: paths of the machine are
//! replaced, and times are the commit's.

mod crates;
mod notices;
mod package;
mod release;
mod sbom;

pub use release::release_check;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::package::{Contents, Label, empty};
use crate::measuring::{printed, said};
use crate::workspace_package;

/// Programs by name, with their features beside the default ones.
const PROGRAMS: [(&str, &str); 2] = [("metra", "postgres"), ("metra-cluster", "postgres,cluster")];
/// Rust's name of the target, and the version of the C library that programs ask for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const LIBC: &str = "2.17";
const PLATFORM: &str = "x86_64-linux";
const DEBIAN: &str = "amd64";
/// Packages of the tools, with hashes.
const TOOLS: &str = "deploy/dist-requirements.txt";

/// Make everything, or, given a program that is built already, its packages alone. Returns the files with their digests.
pub fn dist(root: &Path, output: &Path, built: Option<&Path>) -> Result<String> {
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let output = &output.canonicalize()?;
    let build = Build::new(root, output)?;
    let mut made = Vec::new();
    match built {
        Some(command) => {
            let (name, features) = PROGRAMS[0];
            made.extend(build.pack(root, command, name, build.parts(features)?)?);
        }
        None => {
            let parts = PROGRAMS.map(|(_, features)| build.parts(features));
            let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
            // What the wheel holds is the command without clusters.
            let source = build.export(&parts[0].0)?;
            let tools = build.tools()?;
            for ((name, features), parts) in PROGRAMS.into_iter().zip(parts) {
                let command = build.compile(&source, &tools, features)?;
                made.extend(build.pack(&source, &command, name, parts)?);
            }
            made.extend(build.python(&source, &tools)?);
        }
    }
    made.sort();
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = printed(Command::new("sha256sum").current_dir(output).args(names))?;
    fs::write(output.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

struct Build<'b> {
    root: &'b Path,
    output: &'b Path,
    version: String,
    /// Seconds since 1970 of the commit.
    time: String,
}

impl<'b> Build<'b> {
    fn new(root: &'b Path, output: &'b Path) -> Result<Self> {
        Ok(Self {
            root,
            output,
            version: workspace_package(root, "version")?,
            time: said(root, "git", &["log", "-1", "--format=%ct"])?,
        })
    }

    /// The commit's files in a folder of their own, with the notices of the wheel: what is not committed is in no
    /// release.
    fn export(&self, notices: &str) -> Result<PathBuf> {
        let folder = self.output.join("source");
        empty(&folder)?;
        let archive = self.output.join("source.tar");
        let mut git = Command::new("git");
        git.current_dir(self.root).args(["archive", "--output"]);
        printed(git.arg(&archive).arg("HEAD"))?;
        let mut tar = Command::new("tar");
        printed(
            tar.arg("--extract")
                .arg("--file")
                .arg(&archive)
                .arg("--directory")
                .arg(&folder),
        )?;
        fs::remove_file(archive)?;
        fs::write(folder.join("python/THIRD-PARTY-NOTICES.txt"), notices)?;
        Ok(folder)
    }

    /// zig, cargo-zigbuild and maturin in an environment of Python.
    fn tools(&self) -> Result<PathBuf> {
        let folder = self.output.join("tools");
        let wanted = fs::read_to_string(self.root.join(TOOLS)).context(TOOLS)?;
        let mark = folder.join("installed.txt");
        if fs::read_to_string(&mark).ok().as_ref() != Some(&wanted) {
            printed(
                Command::new("python3")
                    .args(["-m", "venv", "--without-pip"])
                    .arg(&folder),
            )?;
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "--python"])
                .arg(folder.join("bin/python"));
            pip.args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
                "--requirement",
            ]);
            printed(pip.arg(self.root.join(TOOLS)))?;
            fs::write(&mark, wanted)?;
        }
        Ok(folder.join("bin"))
    }

    /// Cargo, or a tool that calls it, with an environment in which the same sources give the same bytes.
    fn reproducible(&self, source: &Path, tools: &Path, program: &str) -> Result<Command> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let home = home.context("neither CARGO_HOME nor HOME is set")?;
        let target = self.output.join("target");
        // Rust takes the last that fits, so that the folders within the source come after it.
        let names = [
            (home.as_path(), "/cargo"),
            (source, "/metra"),
            (target.as_path(), "/target"),
        ];
        let rust: Vec<String> = (names.iter())
            .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()))
            .collect();
        let c: Vec<String> = (names.iter())
            .map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()))
            .collect();
        let mut paths = vec![tools.to_path_buf()];
        paths.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path: OsString = std::env::join_paths(paths)?;
        let mut command = Command::new(program);
        command
            .current_dir(source)
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", &target)
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
            .env("CFLAGS", c.join(" "))
            .env("CXXFLAGS", c.join(" "))
            .env("SOURCE_DATE_EPOCH", &self.time);
        Ok(command)
    }

    fn compile(&self, source: &Path, tools: &Path, features: &str) -> Result<PathBuf> {
        let mut cargo = self.reproducible(source, tools, "cargo")?;
        let target = format!("{TARGET}.{LIBC}");
        cargo.args([
            "zigbuild",
            "--locked",
            "--profile",
            "dist",
            "--package",
            "metra-cli",
        ]);
        loudly(cargo.args(["--features", features, "--target", &target]))?;
        Ok(self.output.join("target").join(TARGET).join("dist/metra"))
    }

    /// The Python package, as a wheel and as sources.
    fn python(&self, source: &Path, tools: &Path) -> Result<Vec<PathBuf>> {
        let folder = self.output.join("wheels");
        empty(&folder)?;
        let mut maturin = self.reproducible(source, tools, "maturin")?;
        maturin.current_dir(source.join("python"));
        maturin.args([
            "build",
            "--locked",
            "--profile",
            "dist",
            "--zig",
            "--target",
            TARGET,
        ]);
        loudly(
            maturin
                .args(["--compatibility", "manylinux2014", "--sdist", "--out"])
                .arg(&folder),
        )?;
        let mut made = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().context("a file has a name")?;
            let place = self.output.join(name);
            fs::rename(&path, &place)?;
            made.push(place);
        }
        Ok(made)
    }

    /// Notices and the list of parts of the command with these features.
    fn parts(&self, features: &str) -> Result<(String, String)> {
        let crates = crates::crates(self.root, "metra-cli", features, TARGET)?;
        Ok((
            notices::notices(&crates)?,
            sbom::sbom("metra-cli", &crates)?,
        ))
    }

    /// The packages of a program.
    fn pack(
        &self,
        source: &Path,
        command: &Path,
        name: &str,
        (notices, sbom): (String, String),
    ) -> Result<Vec<PathBuf>> {
        let said = printed(Command::new(command).arg("--version"))?;
        ensure!(
            said.split_whitespace().nth(1) == Some(self.version.as_str()),
            "{} says {said:?}; expected version {}",
            command.display(),
            self.version
        );
        let contents = Contents {
            command: command.to_path_buf(),
            notices,
            sbom,
        };
        let label = Label {
            name,
            version: &self.version,
            platform: PLATFORM,
            debian: DEBIAN,
            time: &self.time,
        };
        let list = self
            .output
            .join(format!("{name}-{}.cdx.json", self.version));
        fs::write(&list, &contents.sbom)?;
        Ok(vec![
            list,
            package::archive(source, &contents, &label, self.output)?,
            package::debian(source, &contents, &label, self.output)?,
        ])
    }
}

/// Runs a program that shows its progress.
fn loudly(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} could not be run"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
