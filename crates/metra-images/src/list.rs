//! Which images, in which order, and what is known of each: folders, files and patterns of names.
//!
//! A list is the whole of it in memory: a path and a few short texts per image. Folders are read below, sorted
//! by path, so that the order does not depend on the file system. In folders, files are taken by their
//! ending (what a file is, its bytes say later); names that begin with a dot are passed over, as macOS
//! leaves `._photo.jpg` beside `photo.jpg` on foreign disks, and so are links to folders, which may lead in
//! circles.

use crate::pattern::Pattern;
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of files that are taken from folders.
pub const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "bmp", "webp"];

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEntry {
    /// Where it lies.
    pub path: PathBuf,
    /// What is known of it, a value for each of the list's fields.
    pub fields: Vec<String>,
}

/// Images in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Names of what is known.
    pub fields: Vec<String>,
    /// The images.
    pub entries: Vec<ImageEntry>,
    /// Images whose path does not fit the pattern, where that is allowed.
    pub unmatched: u64,
    /// Files and links in folders that were passed over.
    pub passed_over: u64,
}

/// What to do with a path that does not fit the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmatched {
    /// It is an error.
    Fail,
    /// It is left out, and counted.
    Skip,
}

impl List {
    /// Images of folders and files, in the order given; within a folder, of all folders below, by path.
    pub fn gather(
        places: &[PathBuf],
        pattern: Option<&Pattern>,
        unmatched: Unmatched,
    ) -> Result<Self> {
        let mut list = List::default();
        for place in places {
            let kind = fs::metadata(place).map_err(|error| Error::io(place, error))?;
            if kind.is_dir() {
                let mut found = list.walk(place)?;
                found.sort();
                let entries = found.into_iter().map(|below| (place.join(&below), below));
                list.entries_of(entries.collect(), pattern, unmatched)?;
            } else {
                let name = place
                    .file_name()
                    .map_or_else(|| place.clone(), PathBuf::from);
                list.entries_of(vec![(place.clone(), name)], pattern, unmatched)?;
            }
        }
        if let Some(pattern) = pattern {
            list.fields = pattern.names().map(str::to_owned).collect();
        }
        Ok(list)
    }

    /// Add fields that the pattern finds in the paths, each as it is given beside its place.
    pub(crate) fn entries_of(
        &mut self,
        paths: Vec<(PathBuf, PathBuf)>,
        pattern: Option<&Pattern>,
        unmatched: Unmatched,
    ) -> Result<()> {
        for (path, below) in paths {
            let fields = match pattern {
                None => Some(Vec::new()),
                Some(pattern) => pattern.fields(&below),
            };
            match (fields, unmatched, pattern) {
                (Some(fields), _, _) => self.entries.push(ImageEntry { path, fields }),
                (None, Unmatched::Skip, _) => self.unmatched += 1,
                (None, Unmatched::Fail, pattern) => {
                    let text = pattern.map_or("", Pattern::text);
                    let problem =
                        format!("expected a name like {text:?}, found {}", below.display());
                    return Err(Error::file(&path, problem));
                }
            }
        }
        Ok(())
    }

    /// Paths of images below a folder, from there.
    fn walk(&mut self, root: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let place = root.join(&folder);
            let failed = |error| Error::io(&place, error);
            for entry in fs::read_dir(&place).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name();
                if name.as_encoded_bytes().starts_with(b".") {
                    self.passed_over += 1;
                    continue;
                }
                let below = folder.join(&name);
                if entry.file_type().map_err(failed)?.is_dir() {
                    folders.push(below);
                    continue;
                }
                // A link is what it points to. One that points nowhere is listed, so that it is missed
                // where it is read; pipes and devices, which may block whoever opens them, are not.
                let file = fs::metadata(entry.path()).map_or(true, |kind| kind.is_file());
                if file && is_image(&below) {
                    found.push(below);
                } else {
                    self.passed_over += 1;
                }
            }
        }
        Ok(found)
    }
}

pub(crate) fn is_image(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| {
        ENDINGS
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn below(list: &List, folder: &Path) -> Vec<String> {
        let paths = list
            .entries
            .iter()
            .map(|entry| entry.path.strip_prefix(folder).unwrap());
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn folders_are_read_below_and_sorted() {
        let names = [
            "b/2.PNG",
            "b/1.jpg",
            "a.webp",
            "c/d/e.bmp",
            "notes.txt",
            ".hidden/x.png",
            "b/._1.jpg",
        ];
        let folder = folder(&names);
        let places = [folder.path().to_path_buf()];
        let list = List::gather(&places, None, Unmatched::Fail).unwrap();
        assert_eq!(
            below(&list, folder.path()),
            ["a.webp", "b/1.jpg", "b/2.PNG", "c/d/e.bmp"]
        );
        assert_eq!(list.passed_over, 3);
        // Files are taken whatever they are called, in the order given.
        let places = [
            folder.path().join("notes.txt"),
            folder.path().join("a.webp"),
        ];
        let list = List::gather(&places, None, Unmatched::Fail).unwrap();
        assert_eq!(below(&list, folder.path()), ["notes.txt", "a.webp"]);
    }

    #[test]
    fn patterns_give_fields_and_what_does_not_fit_is_named() {
        let folder = folder(&["7_c1.png", "sub/8_c2.png", "other.png"]);
        let places = [folder.path().to_path_buf()];
        let pattern = Pattern::parse("{label}_c{camera}").unwrap();
        let list = List::gather(&places, Some(&pattern), Unmatched::Skip).unwrap();
        assert_eq!(list.fields, ["label", "camera"]);
        assert_eq!(list.entries[1].fields, ["8", "2"]);
        assert_eq!((list.entries.len(), list.unmatched), (2, 1));
        let error = List::gather(&places, Some(&pattern), Unmatched::Fail).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("other.png") && text.contains("{label}_c{camera}"),
            "{text}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_in_circles_end() {
        use std::os::unix::fs::symlink;
        let folder = folder(&["real.png", "sub/a.png"]);
        symlink(folder.path(), folder.path().join("sub/up")).unwrap();
        symlink("self.png", folder.path().join("self.png")).unwrap();
        symlink("real.png", folder.path().join("link.png")).unwrap();
        fs::create_dir(folder.path().join("folder.png")).unwrap();
        let places = [folder.path().to_path_buf()];
        let list = List::gather(&places, None, Unmatched::Fail).unwrap();
        let expected = ["link.png", "real.png", "self.png", "sub/a.png"];
        assert_eq!(below(&list, folder.path()), expected);
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let error = List::gather(&["/no/such/folder".into()], None, Unmatched::Fail).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/folder"), "{error}");
    }
}
