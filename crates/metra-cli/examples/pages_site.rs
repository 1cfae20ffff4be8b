//! Serves the generated news site of the guide on `metra pages` (docs/guide/pages.md): every request for
//! its page is answered with the next version.
//!
//! `cargo run -p metra-cli --example pages_site -- [PORT] [SEED] [none|small-changes|dwelling-banners]`

#[path = "../tests/pages/site.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod site;

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |otherwise: u64| words.next().map_or(Ok(otherwise), |word| word.parse());
    let (port, seed) = (number(8017)?, number(1)?);
    let hardship = words
        .next()
        .map_or(Ok(site::Hardship::None), |word| word.parse())?;
    let site = site::Site { seed, hardship };
    let served = site::Served::start(site, u16::try_from(port)?, true)?;
    let [width, height] = site::WINDOW;
    let address = served.address;
    writeln!(
        std::io::stdout(),
        "http://{address}/ for a window of {width} × {height}; Ctrl-C ends it"
    )?;
    loop {
        std::thread::park();
    }
}
