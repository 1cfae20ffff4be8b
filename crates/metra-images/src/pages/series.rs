//! The versions of one page in the order of time: screenshots of a folder, or a list of them with times.
//!
//! Times come from the names where all have one. A folder in which some names have a date and others have
//! none is refused, since a stray picture would be taken for a version. Names without dates are ordered by
//! the last number in them, or by their letters where some have none.

use super::times::parse_time;
use crate::list::{List, Unmatched, is_image};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// A screenshot with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The file.
    pub path: PathBuf,
    /// Its name, by which labels speak of it.
    pub name: String,
    /// When it was taken: seconds, or whatever unit a list or numbered names have.
    pub time: f64,
}

/// Versions of one page, earlier ones first, no two at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Folder or list, as errors name it.
    place: String,
    versions: Vec<Version>,
}

impl Series {
    /// The screenshots of a folder, or of a list (CSV with the columns `path` and `time`).
    pub fn open(place: &Path) -> Result<Self> {
        if place.is_dir() {
            Self::folder(place)
        } else {
            Self::list(place)
        }
    }

    fn folder(folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))? {
            let path = entry.map_err(|error| Error::io(folder, error))?.path();
            let name = name_of(&path);
            if is_image(&path) && !name.starts_with('.') && path.is_file() {
                files.push((path, name));
            }
        }
        files.sort();
        let times = times_of(&files).map_err(|problem| Error::file(folder, problem))?;
        let versions = files
            .into_iter()
            .zip(times)
            .map(|((path, name), time)| Version { path, name, time });
        Self::new(folder, versions.collect())
    }

    fn list(manifest: &Path) -> Result<Self> {
        let list = List::from_manifest(manifest, None, Unmatched::Fail)?;
        let Some(column) = list.fields.iter().position(|name| name == "time") else {
            let problem = format!(
                "expected the columns path and time, found path and {:?}",
                list.fields
            );
            return Err(Error::file(manifest, problem));
        };
        let mut versions = Vec::new();
        for entry in list.entries {
            let text = entry.fields.get(column).map_or("", |text| text.trim());
            let number = text.parse().ok().filter(|t: &f64| t.is_finite());
            let name = name_of(&entry.path);
            let Some(time) = number.or_else(|| parse_time(text)) else {
                let problem =
                    format!("{name}: expected a number or a date as time, found \"{text}\"");
                return Err(Error::file(manifest, problem));
            };
            versions.push(Version {
                path: entry.path,
                name,
                time,
            });
        }
        Self::new(manifest, versions)
    }

    fn new(place: &Path, mut versions: Vec<Version>) -> Result<Self> {
        versions.sort_by(|a, b| a.time.total_cmp(&b.time).then_with(|| a.name.cmp(&b.name)));
        if let Some([a, b]) = versions
            .windows(2)
            .find(|w| w[0].time >= w[1].time)
            .map(|w| [&w[0], &w[1]])
        {
            return Err(Error::file(
                place,
                format!(
                    "expected one version a time, but {} and {} have the same",
                    a.name, b.name
                ),
            ));
        }
        let series = Series {
            place: place.display().to_string(),
            versions,
        };
        series.expect(2, "to compare")?;
        Ok(series)
    }

    /// An error if there are fewer versions than that.
    pub(super) fn expect(&self, least: usize, what: &str) -> Result<()> {
        let found = self.versions.len();
        if found >= least {
            return Ok(());
        }
        Err(Error::found(
            self.place.clone(),
            format!("expected at least {least} screenshots {what}, found {found}"),
        ))
    }

    /// The versions.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Their times.
    pub fn times(&self) -> Vec<f64> {
        self.versions.iter().map(|v| v.time).collect()
    }

    /// The latest versions alone: `pairs` successive pairs of them.
    pub fn latest(mut self, pairs: usize) -> Self {
        let first = self.versions.len().saturating_sub(pairs.saturating_add(1));
        self.versions.drain(..first);
        self
    }

    /// The place of a version by its file's name, with or without the ending.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let bare = |n: &str| {
            Path::new(n)
                .file_stem()
                .map(|s| s.to_string_lossy().into_owned())
        };
        (self.versions.iter())
            .position(|v| v.name == name || bare(&v.name).as_deref() == Some(name))
    }
}

/// The name of a file, by which labels speak of it.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Times of files by their names: dates, or the last numbers in them, or their order.
fn times_of(files: &[(PathBuf, String)]) -> Result<Vec<f64>, String> {
    let dates: Vec<Option<f64>> = files.iter().map(|(_, name)| parse_time(name)).collect();
    if dates.iter().any(Option::is_some) {
        return (dates.iter().zip(files))
            .map(|(date, (_, name))| {
                date.ok_or_else(|| {
                    format!(
                        "other names have a date (2026-11-15T10-30-00.png), but {name} has none"
                    )
                })
            })
            .collect();
    }
    let numbers: Option<Vec<f64>> = files.iter().map(|(_, name)| last_number(name)).collect();
    Ok(numbers.unwrap_or_else(|| (0..files.len()).map(|place| place as f64).collect()))
}

fn last_number(name: &str) -> Option<f64> {
    let stem = Path::new(name).file_stem()?.to_str()?;
    let end = stem.rfind(|c: char| c.is_ascii_digit())? + 1;
    let digits = stem.get(..end)?;
    let start = digits
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |place| {
            place + digits[place..].chars().next().map_or(1, char::len_utf8)
        });
    digits.get(start..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    fn names(series: &Series) -> Vec<&str> {
        series.versions().iter().map(|v| v.name.as_str()).collect()
    }

    #[test]
    fn order_is_by_dates_then_numbers_then_letters() {
        let dated = folder(&[
            "b_2026-11-15T09-00-00.png",
            "a_2026-11-15T10-00-00.PNG",
            "notes.txt",
            ".x.png",
        ]);
        let series = Series::open(dated.path()).unwrap();
        assert_eq!(
            names(&series),
            ["b_2026-11-15T09-00-00.png", "a_2026-11-15T10-00-00.PNG"]
        );
        assert_eq!(series.times()[1] - series.times()[0], 3600.0);
        assert_eq!(series.place_of("b_2026-11-15T09-00-00"), Some(0));
        let numbered = folder(&["page10.png", "page9.jpg", "page2.webp"]);
        let series = Series::open(numbered.path()).unwrap();
        assert_eq!(names(&series), ["page2.webp", "page9.jpg", "page10.png"]);
        assert_eq!(series.times(), [2.0, 9.0, 10.0]);
        assert_eq!(names(&series.latest(1)), ["page9.jpg", "page10.png"]);
        let lettered = folder(&["é1.png", "ø.png", "b.png"]);
        assert_eq!(
            Series::open(lettered.path()).unwrap().times(),
            [0.0, 1.0, 2.0]
        );
    }

    #[test]
    fn a_list_gives_paths_and_times() {
        let folder = folder(&[]);
        let list = folder.path().join("list.csv");
        std::fs::write(
            &list,
            "time,path\n2026-11-16,late.png\n2026-11-15 12:00,sub/early.png\n",
        )
        .unwrap();
        let series = Series::open(&list).unwrap();
        assert_eq!(names(&series), ["early.png", "late.png"]);
        assert_eq!(
            series.versions()[0].path,
            folder.path().join("sub/early.png")
        );
        std::fs::write(&list, "path,time\na.png,soon\n").unwrap();
        let error = Series::open(&list).unwrap_err().to_string();
        assert!(
            error.ends_with("a.png: expected a number or a date as time, found \"soon\""),
            "{error}"
        );
        std::fs::write(&list, "path,when\na.png,1\n").unwrap();
        assert!(
            Series::open(&list)
                .unwrap_err()
                .to_string()
                .contains("columns path and time")
        );
    }

    #[test]
    fn bad_series_are_refused() {
        let refused = |names: &[&str]| Series::open(folder(names).path()).unwrap_err().to_string();
        assert!(
            refused(&["1.png"]).ends_with("expected at least 2 screenshots to compare, found 1")
        );
        assert!(refused(&["1.png", "01.png"]).contains("01.png and 1.png have the same"));
        assert!(refused(&["2026-11-15.png", "logo.png"]).contains("but logo.png has none"));
    }
}
