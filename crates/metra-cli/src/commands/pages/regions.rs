//! `metra pages regions`: the boxes of a page's own structure.

use super::browser_args::BrowserArgs;
use crate::args::Common;
use crate::print;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Ask a headless Chromium for the boxes of a page's elements, to be weighed in place of cells of a grid.
///
/// Elements are taken apart as long as the parts are larger than 1/200 of the window. The file (CSV with the columns left,
/// top, width, height and element) can be changed by hand: learn and changes take it with --regions. Screenshots must
/// have the same width.
#[derive(Args)]
pub(super) struct Regions {
    /// An address that begins with http://, https:// or file://
    #[arg(value_name = "URL")]
    address: String,
    /// Where to write the boxes
    #[arg(short, long, value_name = "CSV")]
    output: PathBuf,
    #[command(flatten)]
    browser: BrowserArgs,
}

#[derive(Serialize)]
struct Found {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
    element: String,
}

impl Regions {
    pub(super) fn run(&self, common: &Common) -> Result<u8> {
        let (browser, shot) = self.browser.open()?;
        ensure!(
            !self.output.is_dir(),
            "{}: expected a file to write, found a folder",
            self.output.display()
        );
        let regions = browser.regions(&self.address, &shot, &crate::interrupt::STOP)?;
        let found: Vec<Found> = (regions.into_iter())
            .map(|region| {
                let [left, top, width, height] = region.place;
                Found {
                    left,
                    top,
                    width,
                    height,
                    element: region.element,
                }
            })
            .collect();
        let place = || self.output.display().to_string();
        let mut text = "left,top,width,height,element\n".to_owned();
        for Found {
            left,
            top,
            width,
            height,
            element,
        } in &found
        {
            let element = element.replace('"', "\"\"");
            text.push_str(&format!("{left},{top},{width},{height},\"{element}\"\n"));
        }
        std::fs::write(&self.output, text).with_context(place)?;
        if common.json {
            print::json(&found)?;
            return Ok(0);
        }
        for region in &found {
            print::line(&format!(
                "{:>5} {:>5} {:>5} × {:<5} {}",
                region.left, region.top, region.width, region.height, region.element
            ))?;
        }
        print::fact("regions", &format!("{} in {}", found.len(), place()))?;
        Ok(0)
    }
}
