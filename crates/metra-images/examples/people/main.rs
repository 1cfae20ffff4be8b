//! Write images of made-up people, two cameras each, for trying re-identification:
//! `cargo run -p metra-images --example people -- FOLDER PEOPLE`.

mod figures;

use metra_images::encode::png;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(people)) = (arguments.next(), arguments.next()) else {
        return Err("expected a folder and a number of people".into());
    };
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    for person in 0..people.parse::<u64>()? {
        for (camera, name) in figures::CAMERAS.into_iter().enumerate() {
            let bytes = png(&figures::image(1, person, camera))?;
            std::fs::write(folder.join(format!("{person:04}_{name}.png")), bytes)?;
        }
    }
    Ok(())
}
