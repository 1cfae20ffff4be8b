//! One bit per dimension, the most significant bit of a byte first.

use crate::linalg::Rows;

pub(super) fn encode(rows: Rows<'_>, out: &mut Vec<u8>) {
    for row in rows.iter() {
        out.extend(row.chunks(8).map(byte));
    }
}

/// Up to eight signs; bits beyond them are 0.
fn byte(values: &[f32]) -> u8 {
    let bits = values.iter().enumerate();
    bits.fold(0, |byte, (place, value)| {
        byte | (u8::from(*value > 0.0) << (7 - place))
    })
}

pub(super) fn decode(code: &[u8], scale: f32, row: &mut [f32]) {
    for (values, byte) in row.chunks_mut(8).zip(code) {
        for (place, value) in values.iter_mut().enumerate() {
            let is_set = byte >> (7 - place) & 1 == 1;
            *value = if is_set { scale } else { -scale };
        }
    }
}
