//! What a driver sends to executors: the name of a pass, chosen by the first byte, and its settings.

use crate::{Outcome, Reading};
use metra::internal::{Incoming, KeyedBy, PASSES, Ready};
use metra::linalg::Rows;
use std::sync::Arc;

pub(crate) fn pass(bytes: &[u8]) -> Outcome {
    let (&first, settings) = bytes.split_first()?;
    let name = PASSES[first as usize % PASSES.len()].name();
    let keys = match first as usize / PASSES.len() % 3 {
        0 => KeyedBy::Nothing,
        1 => KeyedBy::Class,
        _ => KeyedBy::Group,
    };
    let ready = Arc::new(Ready::new(name, settings, keys, &[]).ok()?);
    let mut started = ready.start(0).ok()?;
    let values = [1.0, 2.0, 3.0, -1.0, 0.5, 0.25, 0.0, 4.0, 1.0, 1.0, 1.0, 2.0];
    let incoming = Incoming {
        first: 0,
        rows: Rows::new(&values, 3).expect("four rows"),
        classes: Some(&[0, 1, 0, 1]),
        groups: Some(&[0, 0, 1, 1]),
    };
    started.update(&incoming).ok()?;
    let mut reading = Reading::default();
    reading.0.update(&[u8::from(started.is_done())]);
    for part in started.close().ok()? {
        reading.text(&format!("{part:?}"));
    }
    reading.done()
}
