//! `metra pages shoot`: screenshots by a headless browser.

use super::browser_args::BrowserArgs;
use crate::args::Common;
use crate::print;
use crate::progress::Reporter;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Take a screenshot of each address with a headless Chromium, as a cron line does.
///
/// Files are named by the time in UTC (2026-11-15T10-30-00Z.png). Several addresses have a folder each. An
/// address that fails is said and the others go on; the command then ends with 1.
#[derive(Args)]
pub(super) struct Shoot {
    /// Addresses that begin with http://, https:// or file://
    #[arg(required = true, value_name = "URL")]
    addresses: Vec<String>,
    /// Folder for the screenshots; of several addresses each has a folder in it
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    browser: BrowserArgs,
}

#[derive(Serialize)]
struct Taken {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Shoot {
    pub(super) fn run(&self, common: &Common) -> Result<u8> {
        let (browser, shot) = self.browser.open()?;
        let mut reporter = Reporter::new();
        reporter.start("shoot");
        let mut all = Vec::new();
        for (done, (address, folder)) in self.addresses.iter().zip(self.folders()?).enumerate() {
            let total = self.addresses.len() as u64;
            reporter.advance(done as u64, Some(total), || address.clone());
            match browser.shoot(address, &folder, &shot, &crate::interrupt::STOP) {
                Ok(file) => all.push(Taken {
                    address: address.clone(),
                    file: Some(file),
                    error: None,
                }),
                Err(metra_images::Error::Library(metra::Error::Interrupted)) => {
                    return Err(metra::Error::Interrupted.into());
                }
                Err(error) => {
                    tracing::error!("{error}");
                    all.push(Taken {
                        address: address.clone(),
                        file: None,
                        error: Some(error.to_string()),
                    });
                }
            }
        }
        reporter.finish();
        if common.json {
            print::json(&all)?;
        } else {
            for file in all.iter().filter_map(|taken| taken.file.as_ref()) {
                print::line(&file.display().to_string())?;
            }
        }
        let failed = all.iter().any(|taken| taken.error.is_some());
        Ok(u8::from(failed))
    }

    /// The folder of each address: the one asked for, or one in it by the address where there are several.
    fn folders(&self) -> Result<Vec<PathBuf>> {
        if self.addresses.len() == 1 {
            return Ok(vec![self.output.clone()]);
        }
        let names: Vec<String> = self
            .addresses
            .iter()
            .map(|address| folder_name(address))
            .collect();
        for (place, name) in names.iter().enumerate() {
            if let Some(other) = names[..place].iter().position(|n| n == name) {
                let [a, b] = [&self.addresses[other], &self.addresses[place]];
                anyhow::bail!(
                    "{a} and {b} would have the same folder {name}: take them one at a time"
                );
            }
        }
        Ok(names.iter().map(|name| self.output.join(name)).collect())
    }
}

/// An address as the name of a folder: letters, digits and dots are kept, all else becomes one dash.
fn folder_name(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let mut name = String::new();
    for letter in rest.chars() {
        if letter.is_ascii_alphanumeric() || letter == '.' {
            name.push(letter);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    // No name may begin with a dot, which hides it or leads out of the folder.
    let name = name.trim_matches(['-', '.']);
    let name: String = name.chars().take(100).collect();
    if name.is_empty() { "page".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_addresses() {
        assert_eq!(
            folder_name("https://www.example.org/news/?page=2"),
            "www.example.org-news-page-2"
        );
        assert_eq!(folder_name("http://127.0.0.1:8017/"), "127.0.0.1-8017");
        assert_eq!(folder_name("file:///../../etc"), "etc");
        assert_eq!(folder_name("http://…"), "page");
    }
}
