//! The browser, its window and its limits, as `shoot` and `regions` take them.

use anyhow::{Result, ensure};
use clap::Args;
use metra_images::pages::{Browser, Shot};
use std::path::PathBuf;
use std::time::Duration;

/// Which browser, and how it looks at a page.
#[derive(Args)]
pub(super) struct BrowserArgs {
    /// The browser (default: chromium, chromium-browser, google-chrome, … in PATH)
    #[arg(long, value_name = "PROGRAM")]
    browser: Option<PathBuf>,
    /// Width of the window in pixels
    #[arg(long, default_value_t = Shot::default().width)]
    width: u32,
    /// Height of the window in pixels; what lies below is not on the picture
    #[arg(long, default_value_t = Shot::default().height)]
    height: u32,
    /// Let scripts run for so many milliseconds after loading (for a screenshot, of the page's own time)
    #[arg(long, value_name = "MS")]
    wait: Option<u64>,
    /// Seconds after which a browser is killed
    #[arg(long, value_name = "S", default_value_t = Shot::default().timeout.as_secs())]
    timeout: u64,
    /// Run the browser without its sandbox, which root cannot have: a page that breaks the browser then
    /// has the rights of this user
    #[arg(long)]
    no_sandbox: bool,
    /// The only hosts that pages may load from, comma-separated; * stands for any text (default: any)
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    hosts: Vec<String>,
    /// One more flag for the browser (repeatable), as --flag=--lang=en
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
}

/// Sides of a window that a browser draws.
const SIDES: std::ops::RangeInclusive<u32> = 16..=16_384;

impl BrowserArgs {
    /// The browser and what a look at a page is to be like.
    pub(super) fn open(&self) -> Result<(Browser, Shot)> {
        for (name, side) in [("width", self.width), ("height", self.height)] {
            let (least, most) = (SIDES.start(), SIDES.end());
            ensure!(
                SIDES.contains(&side),
                "--{name} must be between {least} and {most}, but is {side}"
            );
        }
        ensure!(self.timeout > 0, "--timeout must be at least 1, but is 0");
        let browser = Browser::find(self.browser.as_deref())?;
        let shot = Shot {
            width: self.width,
            height: self.height,
            wait: self.wait.map(Duration::from_millis),
            timeout: Duration::from_secs(self.timeout),
            no_sandbox: self.no_sandbox,
            hosts: self.hosts.clone(),
            flags: self.flags.clone(),
        };
        Ok((browser, shot))
    }
}
