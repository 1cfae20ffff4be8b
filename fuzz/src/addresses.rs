//! Addresses of databases: whatever is said of them shows no part of the password.

use crate::{Outcome, Reading};
use metra_stores::postgres::Address;

pub(crate) fn postgres(bytes: &[u8]) -> Outcome {
    let password = String::from_utf8_lossy(bytes);
    let address = format!("postgres://someone:{password}@db.example:5432/vectors");
    let message = match Address::parse(&address) {
        Ok(address) => address.to_string(),
        Err(error) => error.to_string(),
    };
    // Pieces that are long enough not to stand in a message by chance.
    let letters: Vec<char> = password.chars().collect();
    let usual = "the address of the database expected one between password and host but found another \
                 postgres://someone:password@db.example:5432/vectors user port cannot be read characters \
                 such as in a are written as %40 %3A %2F %3F %23";
    for piece in letters.windows(6) {
        let piece: String = piece.iter().collect();
        let known = usual.contains(&piece) || piece.contains(' ');
        assert!(
            known || !message.contains(&piece),
            "{piece:?} is in {message:?}"
        );
    }
    let mut reading = Reading::default();
    reading.text(&message);
    reading.done()
}
