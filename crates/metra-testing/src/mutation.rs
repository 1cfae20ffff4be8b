//! Damaged files by a seed: bytes changed, cut out, doubled, cut off, or taken from another file.

/// Numbers at which readers go wrong.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 62,
    u64::MAX,
];

/// A damaged copy of `valid`; `other` gives pieces of another file, and `below` draws a number below another.
pub fn mutated(valid: &[u8], other: &[u8], below: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=below(4) {
        once(&mut bytes, other, below);
    }
    bytes
}

fn once(bytes: &mut Vec<u8>, other: &[u8], below: &mut dyn FnMut(u64) -> u64) {
    if bytes.is_empty() {
        bytes.push(0);
    }
    let at = below(bytes.len() as u64) as usize;
    let left = bytes.len() - at;
    let count = 1 + below(left.min(64) as u64) as usize;
    match below(8) {
        0 | 1 => bytes[at] ^= 1 << below(8),
        2 => bytes[at] = below(256) as u8,
        3 | 4 => {
            let edge = EDGES[below(8) as usize].to_le_bytes();
            let width = [1, 2, 4, 8][below(4) as usize].min(left);
            bytes[at..at + width].copy_from_slice(&edge[..width]);
        }
        5 => drop(bytes.drain(at..at + count)),
        6 => {
            let piece: Vec<u8> = bytes[at..at + count].to_vec();
            bytes.splice(at..at, piece);
        }
        _ if below(4) == 0 => bytes.truncate(at),
        _ => {
            let from = below(other.len().max(1) as u64) as usize;
            let piece: Vec<u8> = other.iter().skip(from).take(count).copied().collect();
            bytes.splice(at..at + count, piece);
        }
    }
}
