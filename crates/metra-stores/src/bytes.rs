//! Numbers as they lie in files, whatever the machine.

/// Numbers as little-endian bytes.
pub(crate) fn little_endian(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
