//! Archives and Debian packages of a built program. Bytes depend on the sources alone: files are in order, belong to root and
//! have the time of the commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measuring::printed;
use crate::tree;
use anyhow::{Context, Result};

/// What goes into every package, in a folder of its own.
pub(super) struct Contents {
    /// The program.
    pub(super) command: PathBuf,
    pub(super) notices: String,
    pub(super) sbom: String,
}

/// What packages are called and say.
pub(super) struct Label<'l> {
    /// `metra`, or `metra-cluster` for the program with clusters.
    pub(super) name: &'l str,
    pub(super) version: &'l str,
    /// Such as x86_64-linux.
    pub(super) platform: &'l str,
    /// Debian's name of the processor, such as amd64.
    pub(super) debian: &'l str,
    /// Seconds since 1970 of the commit.
    pub(super) time: &'l str,
}

/// Shells with the names that their completions have in an archive and the places that Debian keeps them at.
const SHELLS: [(&str, &str, &str); 3] = [
    (
        "bash",
        "metra.bash",
        "usr/share/bash-completion/completions/metra",
    ),
    ("zsh", "_metra", "usr/share/zsh/vendor-completions/_metra"),
    (
        "fish",
        "metra.fish",
        "usr/share/fish/vendor_completions.d/metra.fish",
    ),
];

const SERVICE: &str = "metra-serve.service";
const CLUSTER_SERVICES: [&str; 2] = ["metra-executor.service", "metra-scheduler.service"];

/// An archive of the program with its licences, manual pages and completions.
pub(super) fn archive(
    root: &Path,
    contents: &Contents,
    label: &Label<'_>,
    output: &Path,
) -> Result<PathBuf> {
    let name = format!("{}-{}-{}", label.name, label.version, label.platform);
    let stage = output.join("stage");
    let folder = stage.join(&name);
    empty(&stage)?;
    place(&contents.command, &folder.join("metra"), 0o755)?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        place(&root.join(licence), &folder.join(licence), 0o644)?;
    }
    write(&folder.join("THIRD-PARTY-NOTICES.txt"), &contents.notices)?;
    write(&folder.join("sbom.cdx.json"), &contents.sbom)?;
    manual(&contents.command, &folder.join("man"))?;
    for (shell, file, _) in SHELLS {
        let script = completions(&contents.command, shell)?;
        write(&folder.join("completions").join(file), &script)?;
    }
    let path = packed(&stage, &name, output, label.time)?;
    fs::remove_dir_all(&stage)?;
    Ok(path)
}

/// An archive of the folder `name` in `stage`, whose bytes depend on its files alone.
pub(super) fn packed(stage: &Path, name: &str, output: &Path, time: &str) -> Result<PathBuf> {
    let tar = output.join(format!("{name}.tar"));
    let mut program = Command::new("tar");
    program
        .args(["--create", "--sort=name", "--owner=0", "--group=0"])
        .args(["--numeric-owner", "--format=gnu", "--mode=go=rX,u+w"])
        .arg(format!("--mtime=@{time}"));
    program.arg("--file").arg(&tar);
    printed(program.arg("--directory").arg(stage).arg(name))?;
    printed(
        Command::new("gzip")
            .args(["--no-name", "--force", "-9"])
            .arg(&tar),
    )?;
    Ok(tar.with_extension("tar.gz"))
}

/// A Debian package.
pub(super) fn debian(
    root: &Path,
    contents: &Contents,
    label: &Label<'_>,
    output: &Path,
) -> Result<PathBuf> {
    let stage = output.join("stage");
    empty(&stage)?;
    place(&contents.command, &stage.join("usr/bin/metra"), 0o755)?;
    let documents = stage.join("usr/share/doc").join(label.name);
    let mut copyright = String::new();
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copyright += &fs::read_to_string(root.join(licence)).context(licence)?;
        copyright.push('\n');
    }
    write(
        &documents.join("copyright"),
        &(copyright + &contents.notices),
    )?;
    write(&documents.join("sbom.cdx.json"), &contents.sbom)?;
    place(
        &root.join("CHANGELOG.md"),
        &documents.join("changelog"),
        0o644,
    )?;
    manual(&contents.command, &stage.join("usr/share/man/man1"))?;
    for page in fs::read_dir(stage.join("usr/share/man/man1"))? {
        printed(
            Command::new("gzip")
                .args(["--no-name", "-9"])
                .arg(page?.path()),
        )?;
    }
    for (shell, _, place) in SHELLS {
        write(&stage.join(place), &completions(&contents.command, shell)?)?;
    }
    let has_cluster = label.name.ends_with("cluster");
    let of_cluster = CLUSTER_SERVICES.into_iter().filter(|_| has_cluster);
    for service in of_cluster.chain([SERVICE]) {
        let unit = fs::read_to_string(root.join("deploy/systemd").join(service))?;
        // By hand the command is put elsewhere than a package may put it.
        let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
        write(&stage.join("usr/lib/systemd/system").join(service), &unit)?;
    }
    let kilobytes = size(&stage)? / 1024;
    let Label {
        name,
        version,
        debian,
        ..
    } = label;
    let other = match label.name {
        "metra" => "metra-cluster",
        _ => "metra",
    };
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {debian}\nMaintainer: The Metra developers \
         <metra@example.invalid>\nInstalled-Size: {kilobytes}\nSection: science\nPriority: optional\nConflicts: {other}\nReplaces: {other}\nDepends: libc6 (>= 2.17)\n\
         Description: Learn distances over vectors so that the right answers rank first\n \
         Metra learns a small map from labels or relevance judgements, states the gain with an interval, and puts the\n \
         result to work in a vector store.\n"
    );
    write(&stage.join("DEBIAN/control"), &control)?;
    let path = output.join(format!("{name}_{version}_{debian}.deb"));
    let mut program = Command::new("dpkg-deb");
    program.env("SOURCE_DATE_EPOCH", label.time);
    printed(
        program
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&stage)
            .arg(&path),
    )?;
    fs::remove_dir_all(&stage)?;
    Ok(path)
}

fn manual(command: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    printed(Command::new(command).arg("man").arg(folder))?;
    for page in fs::read_dir(folder)? {
        fs::set_permissions(page?.path(), fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn completions(command: &Path, shell: &str) -> Result<String> {
    printed(Command::new(command).args(["completions", shell]))
}

/// Makes a folder, or makes it empty.
pub(super) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(())
}

fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    put(to, &bytes, mode)
}

fn write(path: &Path, text: &str) -> Result<()> {
    put(path, text.as_bytes(), 0o644)
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    tree::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    if path.is_file() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += size(&entry?.path())?;
    }
    Ok(sum)
}
