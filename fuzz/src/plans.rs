//! What goes over the wire of a cluster: stages of plans, and addresses of schedulers and tables.

use crate::{Outcome, Reading};
use metra_engine::cluster::SchedulerAddress;
use metra_engine::internal::{decode_stage, place};

pub(crate) fn plan(bytes: &[u8]) -> Outcome {
    let stage = decode_stage(bytes).ok()?;
    let mut reading = Reading::default();
    reading.text(&stage);
    reading.done()
}

pub(crate) fn cluster_address(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let _ = place(&text);
    let address: SchedulerAddress = text.parse().ok()?;
    let again = address.to_string();
    assert_eq!(
        again.parse::<SchedulerAddress>().expect("an address"),
        address
    );
    let mut reading = Reading::default();
    reading.text(&again);
    reading.done()
}
