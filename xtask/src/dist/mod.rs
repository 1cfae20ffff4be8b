//! `cargo xtask dist`: what a release consists of, made from the commit that is checked out.
//!
//! Programs are linked by zig against the oldest C library that Rust supports, so that they run on every Linux that has it;
//! archives and Debian packages hold them with licences, notices of third parties, a list of parts, manual pages and
//! completions. The Python package is built the same way. Two runs at one commit should give the same bytes: paths of the machine are
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
use clap::ValueEnum;

use self::package::{Contents, Label, empty};
use crate::measuring::{printed, said};
use crate::{tree, workspace_package};

/// A part of a release that can be made alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DistPart {
    /// The command: archive and Debian package
    Metra,
    /// The Python package: wheel and sources
    Python,
    /// The command with `metra cluster`: archive and Debian package
    MetraCluster,
}

impl DistPart {
    /// The name of the files.
    fn name(self) -> &'static str {
        match self {
            Self::Metra => "metra",
            Self::Python => "metra-python",
            Self::MetraCluster => "metra-cluster",
        }
    }

    /// The crate, and its features beside the default ones.
    fn package(self) -> (&'static str, &'static str) {
        match self {
            Self::Metra => ("metra-cli", "postgres,serve"),
            Self::Python => ("metra-python", ""),
            Self::MetraCluster => ("metra-cli", "postgres,serve,cluster"),
        }
    }
}

/// Rust's name of the target, and the version of the C library that programs ask for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const LIBC: &str = "2.17";
const PLATFORM: &str = "x86_64-linux";
const DEBIAN: &str = "amd64";
/// What the command's feature `cluster` needs, which the Python package does not have.
const ENGINE: &str = "crates/metra-engine";
/// Packages of the tools, with hashes.
const TOOLS: &str = "deploy/dist-requirements.txt";

/// Make these parts, or all of them if none is named; or, given a program that is built already, its packages alone.
/// Returns the files with their digests.
pub fn dist(root: &Path, output: &Path, only: &[DistPart], built: Option<&Path>) -> Result<String> {
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let output = &output.canonicalize()?;
    let build = Build::new(root, output)?;
    let mut made = Vec::new();
    if let Some(command) = built {
        let part = DistPart::Metra;
        made.extend(build.pack(root, command, part, build.licensing(part)?)?);
    } else {
        let parts = match only {
            [] => DistPart::value_variants(),
            only => only,
        };
        let source = build.export()?;
        let tools = build.tools()?;
        for part in parts.iter().copied() {
            let licensing = build.licensing(part)?;
            made.extend(match part {
                DistPart::Python => build.python(&source, &tools, licensing)?,
                _ => {
                    let command = build.compile(&source, &tools, part)?;
                    build.pack(&source, &command, part, licensing)?
                }
            });
        }
    }
    made.sort();
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = printed(Command::new("sha256sum").current_dir(output).args(names))?;
    fs::write(output.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

/// Licences of everything that a part holds on a target of Rust, as one text.
pub fn notices(root: &Path, part: DistPart, target: &str) -> Result<String> {
    let (package, features) = part.package();
    notices::notices(&crates::crates(root, package, features, target)?)
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

    /// The commit's files in a folder of their own: what is not committed is in no release.
    fn export(&self) -> Result<PathBuf> {
        let folder = self.output.join("source");
        empty(&folder)?;
        let archive = self.output.join("source.tar");
        let mut git = Command::new("git");
        git.current_dir(self.root).args(["archive", "--output"]);
        printed(git.arg(&archive).arg("HEAD"))?;
        unpack(&archive, &folder)?;
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
                "--no-deps",
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
        // All of them in every call: other flags would compile everything once more.
        let folders = ["source", "sdist", "target"].map(|name| self.output.join(name));
        let names = [
            (&home, "/cargo"),
            (&folders[0], "/metra"),
            (&folders[1], "/python"),
            (&folders[2], "/target"),
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
            .env("CARGO_TARGET_DIR", &folders[2])
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
            .env("CFLAGS", c.join(" "))
            // usearch gives a file of C to the compiler of C++, and zig goes by the ending.
            .env("CXXFLAGS", format!("{} -x c++", c.join(" ")))
            .env("SOURCE_DATE_EPOCH", &self.time);
        Ok(command)
    }

    fn compile(&self, source: &Path, tools: &Path, part: DistPart) -> Result<PathBuf> {
        let (package, features) = part.package();
        let mut cargo = self.reproducible(source, tools, "cargo")?;
        cargo.args(["zigbuild", "--locked", "--profile", "dist"]);
        cargo.args(["--package", package, "--features", features]);
        loudly(cargo.args(["--target", &format!("{TARGET}.{LIBC}")]))?;
        Ok(self.output.join("target").join(TARGET).join("dist/metra"))
    }

    /// The Python package as sources, and as the wheel that is built from these. The licences of others lie beside
    /// ours, where the package's metadata finds them.
    fn python(
        &self,
        source: &Path,
        tools: &Path,
        (notices, sbom): (String, String),
    ) -> Result<Vec<PathBuf>> {
        let python = source.join("python");
        tree::write(&python.join("LICENSE-THIRD-PARTY.txt"), notices.as_bytes())?;
        let sources = self.python_sources(source, tools)?;
        let folder = self.output.join("wheels");
        empty(&folder)?;
        let list = self.list_of_parts(DistPart::Python, &sbom)?;
        let mut maturin = self.reproducible(&sources, tools, "maturin")?;
        maturin.args(["build", "--locked", "--profile", "dist", "--zig"]);
        maturin.arg("--sbom-include").arg(&list);
        maturin.args(["--target", TARGET, "--compatibility", "manylinux2014"]);
        loudly(maturin.arg("--out").arg(&folder))?;
        let stage = sources.parent().context("sources lie in a folder")?;
        let name = format!("metra-{}", self.version);
        let mut made = vec![package::packed(stage, &name, self.output, &self.time)?];
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().context("a file has a name")?;
            let place = self.output.join(name);
            fs::rename(&path, &place)?;
            made.push(place);
        }
        let mut twine = Command::new(tools.join("python"));
        loudly(twine.args(["-m", "twine", "check", "--strict"]).args(&made))?;
        made.push(list);
        Ok(made)
    }

    /// The sources of the Python package in a folder of their own.
    fn python_sources(&self, source: &Path, tools: &Path) -> Result<PathBuf> {
        let folder = self.output.join("sdist");
        empty(&folder)?;
        let mut maturin = self.reproducible(source, tools, "maturin")?;
        maturin.current_dir(source.join("python"));
        printed(maturin.args(["sdist", "--out"]).arg(&folder))?;
        let name = format!("metra-{}", self.version);
        unpack(&folder.join(format!("{name}.tar.gz")), &folder)?;
        let sources = folder.join(name);
        // maturin leaves out crates that no feature of the package asks for, but cargo reads their manifests.
        let mut copy = Command::new("cp");
        copy.arg("--recursive").arg(source.join(ENGINE));
        printed(copy.arg(sources.join(ENGINE)))?;
        // Without what only other members of the workspace need, so that the list of versions is that of these sources.
        let mut cargo = self.reproducible(&sources, tools, "cargo")?;
        printed(cargo.args(["metadata", "--offline", "--format-version", "1"]))?;
        Ok(sources)
    }

    /// Notices and the list of parts.
    fn licensing(&self, part: DistPart) -> Result<(String, String)> {
        let (package, features) = part.package();
        let crates = crates::crates(self.root, package, features, TARGET)?;
        Ok((notices::notices(&crates)?, sbom::sbom(package, &crates)?))
    }

    fn list_of_parts(&self, part: DistPart, sbom: &str) -> Result<PathBuf> {
        let name = format!("{}-{}.cdx.json", part.name(), self.version);
        let path = self.output.join(name);
        tree::write(&path, sbom.as_bytes())?;
        Ok(path)
    }

    /// The packages of a program.
    fn pack(
        &self,
        source: &Path,
        command: &Path,
        part: DistPart,
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
            name: part.name(),
            version: &self.version,
            platform: PLATFORM,
            debian: DEBIAN,
            time: &self.time,
        };
        Ok(vec![
            self.list_of_parts(part, &contents.sbom)?,
            package::archive(source, &contents, &label, self.output)?,
            package::debian(source, &contents, &label, self.output)?,
        ])
    }
}

/// Puts the files of an archive into a folder, and removes the archive.
fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive);
    printed(tar.arg("--directory").arg(folder))?;
    Ok(fs::remove_file(archive)?)
}

/// Runs a program that shows its progress.
fn loudly(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} could not be run"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
