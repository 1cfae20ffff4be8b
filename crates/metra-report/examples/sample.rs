//! Writes the reports of made-up results into a folder, to be looked at:
//! `cargo run -p metra-report --example sample -- FOLDER`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("expected a folder to write to")?;
    std::fs::create_dir_all(&folder)?;
    let samples = [
        ("comparison", fixture::comparison()),
        ("train", fixture::train()),
        ("many", fixture::many()),
    ];
    for (name, (results, costs)) in samples {
        let page = metra_report::html(&results, Some(&costs))?;
        std::fs::write(folder.join(format!("{name}.html")), page)?;
        let page = metra_report::markdown(&results, Some(&costs));
        std::fs::write(folder.join(format!("{name}.md")), page)?;
    }
    Ok(())
}
