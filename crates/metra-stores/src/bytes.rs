//! Numbers as they lie in files, whatever the machine.

/// Numbers as little-endian bytes.
pub(crate) fn little_endian(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Append how many numbers there are, as u64, and the numbers.
pub(crate) fn write_counted(bytes: &mut Vec<u8>, values: &[f32]) {
    bytes.extend((values.len() as u64).to_le_bytes());
    bytes.extend(little_endian(values));
}
