//! What is checked of output files before a command does any work: that they can be written, that
//! none of them is a file which the command reads, and that no file of another kind is lost.

use anyhow::{Context, Result, bail, ensure};
use clap::ArgMatches;
use metra::internal::FileKind;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Arguments that name what is written; all other paths are read.
const OUTPUTS: [&str; 6] = ["output", "report", "page", "best", "query_map", "item_map"];
/// The argument `run` is written by these verbs and read by `eval`.
const RUN: [(&str, &str); 2] = [("search", "run"), ("fuse", "run")];

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What its first bytes tell; other text is one kind.
    File(FileKind),
    Html,
    /// A ranking as TREC has it.
    Run,
}

const TEXT: Kind = Kind::File(FileKind::Other);
const SAFETENSORS: Kind = Kind::File(FileKind::Safetensors);

/// Check all outputs of a parsed command line; `force` allows to replace any file.
pub(crate) fn check(matches: &ArgMatches, force: bool) -> Result<()> {
    let Some((mut verb, mut matches)) = matches.subcommand() else {
        return Ok(());
    };
    while let Some((inner, given)) = matches.subcommand() {
        (verb, matches) = (inner, given);
    }
    let is_output = |id: &str| OUTPUTS.contains(&id) || RUN.contains(&(verb, id));
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for id in matches.ids().map(clap::Id::as_str) {
        // Groups of arguments and values that are not paths have another type.
        if let Ok(Some(paths)) = matches.try_get_many::<PathBuf>(id) {
            match is_output(id) {
                true => written.extend(paths.map(|path| (path, kind_written(verb, id, path)))),
                false => read.extend(paths),
            }
        }
    }
    for (place, (path, kind)) in written.iter().enumerate() {
        let before = written[..place].iter().any(|(other, _)| other == path);
        ensure!(
            !before,
            "{}: expected another file for each output",
            path.display()
        );
        check_output(path, *kind, &read, force)?;
    }
    Ok(())
}

/// What an argument of a verb writes under a name.
fn kind_written(verb: &str, argument: &str, path: &Path) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match (verb, argument, extension) {
        (_, "report", _) => Kind::Html,
        (_, "run", _) => Kind::Run,
        (_, "page", _) => TEXT,
        (_, "best" | "query_map" | "item_map", _)
        | ("train" | "calibrate" | "learn" | "sums", _, _) => SAFETENSORS,
        (_, _, Some("safetensors")) => SAFETENSORS,
        (_, _, Some("parquet")) => Kind::File(FileKind::Parquet),
        (_, _, Some("npy")) => Kind::File(FileKind::Npy),
        (_, _, Some("png" | "jpg" | "jpeg")) => Kind::File(FileKind::Image),
        _ => TEXT,
    }
}

fn check_output(path: &Path, kind: Kind, read: &[&PathBuf], force: bool) -> Result<()> {
    let Ok(existing) = fs::metadata(path) else {
        return check_writable(path);
    };
    if existing.is_dir() {
        ensure!(
            kind == TEXT,
            "{}: it is a folder; expected the name of a file to write",
            path.display()
        );
        return check_writable(&path.join("x"));
    }
    ensure!(
        existing.is_file(),
        "{}: expected the name of a file to write, but it is a device or a pipe",
        path.display()
    );
    if !force {
        if let Some(input) = read.iter().find(|input| is_same(input, path)) {
            bail!(
                "{}: it is read by this command too (as {}) and would be lost; name another file, or \
                 say --force",
                path.display(),
                input.display()
            );
        }
        let found = kind_of(path).with_context(|| path.display().to_string())?;
        ensure!(
            existing.len() == 0 || found == kind,
            "{}: there is a file of another kind, which would be lost; name another file, or say \
             --force",
            path.display()
        );
    }
    check_writable(path)
}

/// Whether two names are those of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
    }
    #[cfg(not(unix))]
    {
        matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
    }
}

fn kind_of(path: &Path) -> std::io::Result<Kind> {
    let mut start = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut start)?;
    let kind = FileKind::of(&start);
    if kind != FileKind::Other {
        return Ok(Kind::File(kind));
    }
    if start.starts_with(b"<!DOCTYPE html") {
        return Ok(Kind::Html);
    }
    let text = String::from_utf8_lossy(&start);
    let mut fields = text.lines().next().unwrap_or_default().split_whitespace();
    Ok(match (fields.nth(1), fields.count()) {
        (Some("Q0"), 4) => Kind::Run,
        _ => TEXT,
    })
}

/// Refuse a place that nothing can be written to. A folder that will be made is written to where it is made; a
/// file, which has an ending, needs its folder.
fn check_writable(path: &Path) -> Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let (Some(parent), Some(_)) = (parent, path.extension()) {
        let there = parent.is_dir();
        ensure!(
            there,
            "{}: there is no folder {}",
            path.display(),
            parent.display()
        );
    }
    let mut folders = path.ancestors().skip(1);
    let folder = folders.find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let folder = match folder {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match tempfile::tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(error) => bail!(
            "{}: nothing can be written to {}: {error}",
            path.display(),
            folder.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_and_files_of_another_kind_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("data.parquet"), b"PAR1 and more").unwrap();
        fs::write(at("old.safetensors"), b"\x10\0\0\0\0\0\0\0{}").unwrap();
        fs::write(at("empty.safetensors"), b"").unwrap();
        let check = |name: &str, read: &str, force| {
            let kind = kind_written("train", "output", &at(name));
            check_output(&at(name), kind, &[&at(read)], force).map_err(|e| e.to_string())
        };
        for name in ["new.safetensors", "old.safetensors", "empty.safetensors"] {
            assert_eq!(check(name, "data.parquet", false), Ok(()));
        }
        let lost = check("data.parquet", "other", false).unwrap_err();
        assert!(lost.contains("of another kind"), "{lost}");
        assert_eq!(check("data.parquet", "other", true), Ok(()));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("data.parquet"), at("link")).unwrap();
            let lost = check("data.parquet", "link", false).unwrap_err();
            assert!(lost.contains("read by this command"), "{lost}");
            let error = check_output(Path::new("/dev/null"), TEXT, &[], true);
            assert!(error.unwrap_err().to_string().contains("a device"));
        }
        let own = check("old.safetensors", "old.safetensors", false).unwrap_err();
        assert!(own.contains("read by this command"), "{own}");
        let nowhere = check_writable(&at("none/m.safetensors"));
        assert!(nowhere.unwrap_err().to_string().contains("no folder"));
        let nowhere = check_writable(Path::new("/proc/m.safetensors"));
        assert!(
            nowhere
                .unwrap_err()
                .to_string()
                .contains("nothing can be written")
        );
        fs::write(at("qrels.tsv"), "q1 0 d1 1\n").unwrap();
        let run = check_output(&at("qrels.tsv"), Kind::Run, &[], false);
        assert!(run.unwrap_err().to_string().contains("of another kind"));
        fs::write(at("old.run"), "q1 Q0 d1 1 0.5 metra\n").unwrap();
        check_output(&at("old.run"), Kind::Run, &[], false).unwrap();
    }
}
