//! What a file holds, by its first bytes.

/// Bytes that tell a kind.
pub const FILE_START: usize = 16;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Parquet.
    Parquet,
    /// Arrow IPC, also called Feather.
    Arrow,
    /// numpy's npy.
    Npy,
    /// A zip archive, such as numpy's npz.
    Zip,
    /// safetensors, such as a model.
    Safetensors,
    /// PNG or JPEG.
    Image,
    /// Packed by gzip.
    Gzip,
    /// Packed by zstd.
    Zstd,
    /// Packed by bzip2.
    Bzip2,
    /// Packed by xz.
    Xz,
    /// Text, or something else.
    Other,
}

impl FileKind {
    /// By the first [`FILE_START`] bytes of a file, or all that it has.
    pub fn of(start: &[u8]) -> Self {
        match start {
            [b'P', b'A', b'R', b'1', ..] => FileKind::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => FileKind::Arrow,
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => FileKind::Npy,
            [b'P', b'K', 3, 4, ..] => FileKind::Zip,
            // The length of a header below 4 GB, and the header: JSON.
            [_, _, _, _, 0, 0, 0, 0, b'{', ..] => FileKind::Safetensors,
            [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => FileKind::Image,
            [0x1f, 0x8b, ..] => FileKind::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => FileKind::Zstd,
            [b'B', b'Z', b'h', ..] => FileKind::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', ..] => FileKind::Xz,
            _ => FileKind::Other,
        }
    }
}
