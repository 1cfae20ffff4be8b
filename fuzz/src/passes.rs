//! What a driver sends to executors: the name of a pass, chosen by the first byte, and its settings. They are read
//! here and not run: an executor trusts its driver (SECURITY.md), and a pass takes the memory that its settings
//! ask for.

use crate::{Outcome, Reading};
use metra::internal::{KeyedBy, PASSES, Ready};

pub(crate) fn pass(bytes: &[u8]) -> Outcome {
    let (&first, settings) = bytes.split_first()?;
    let name = PASSES[first as usize % PASSES.len()].name();
    let ready = Ready::new(name, settings, KeyedBy::Class, &[]).ok()?;
    let mut reading = Reading::default();
    reading.text(name);
    reading.0.update(&[u8::from(ready.needs_groups())]);
    reading.done()
}
