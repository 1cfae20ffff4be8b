//! Takes the digest of the library's sources, by which the log and the results of a comparison name the code
//! that made them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let mut files = vec![root.join("Cargo.toml")];
    add_sources(&root.join("src"), &mut files)?;
    files.sort();
    let mut digest = blake3::Hasher::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        // File by file: a folder looks changed when one is copied, and a new file is named in one that is here.
        println!("cargo::rerun-if-changed={}", file.display());
        let path = file.strip_prefix(&root).map_err(io::Error::other)?;
        // The same on a system that separates folders or ends lines in another way.
        for part in path.components() {
            digest.update(part.as_os_str().as_encoded_bytes());
            digest.update(b"/");
        }
        digest.update(text.replace("\r\n", "\n").as_bytes());
        digest.update(b"\0");
    }
    println!(
        "cargo::rustc-env=METRA_CODE_DIGEST={}",
        &digest.finalize().to_hex()[..16]
    );
    Ok(())
}

fn add_sources(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_sources(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
