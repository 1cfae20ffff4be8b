//! The beginning of numpy's files, which several crates write.

/// What stands before the numbers of an npy file (version 1.0, C order) of this element, such as `<f4`: a text of a
/// Python dict, padded so that they begin at a multiple of 64 and can be mapped.
pub fn npy_header(element: &str, rows: u64, dim: usize) -> Vec<u8> {
    let about =
        format!("{{'descr': '{element}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    // Magic, version and length take ten bytes, the end of the line one.
    let length = (10 + about.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(format!("{about:<width$}\n", width = length - 1).bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_a_multiple_of_64() {
        for (rows, dim) in [(0, 1), (1, 1), (1_797, 64), (u64::MAX, usize::MAX)] {
            let header = npy_header("<f4", rows, dim);
            assert_eq!(header.len() % 64, 0);
            let length = u16::from_le_bytes([header[8], header[9]]);
            assert_eq!(usize::from(length) + 10, header.len());
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }
}
