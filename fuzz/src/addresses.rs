//! Addresses of databases: whatever is said of them shows no part of the password.

use crate::{Outcome, Reading};
use metra_stores::postgres::Address;

/// What messages consist of, whatever the password: a password that holds one of them is not shown by it.
const OWN_WORDS: [&str; 6] = [
    "the address of the database: ",
    "expected one @, between password and host, but found another; ",
    "expected postgres://user:password@host:port/database, but it cannot be read; ",
    "expected sslmode to be disable, allow, prefer, require, verify-ca or verify-full; ",
    "characters such as @ : / ? # in a password are written as %40 %3A %2F %3F %23",
    "db.example:5432/vectors",
];

pub(crate) fn postgres(bytes: &[u8]) -> Outcome {
    let password = String::from_utf8_lossy(bytes);
    let address = format!("postgres://someone:{password}@db.example:5432/vectors");
    let message = match Address::parse(&address) {
        Ok(address) => address.to_string(),
        Err(error) => error.to_string(),
    };
    // Pieces that are long enough not to stand in a message by chance.
    let letters: Vec<char> = password.chars().collect();
    let ours = OWN_WORDS.join(" ");
    for piece in letters.windows(6) {
        let piece: String = piece.iter().collect();
        let known = ours.contains(&piece);
        assert!(
            known || !message.contains(&piece),
            "{piece:?} is in {message:?}"
        );
    }
    let mut reading = Reading::default();
    reading.text(&message);
    reading.done()
}
