//! Protocol buffers, as far as a model in ONNX needs them: whole numbers as varints, and texts, bytes
//! and messages with their length in front.

/// A message that fields are appended to.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A whole number; a negative one as the 64 bits it has in two's complement.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// A text.
    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Bytes.
    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits per byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The examples of the encoding's documentation: field 1 = 150, field 2 = "testing", and a message
    // with the first as field 3.
    #[test]
    fn the_documented_examples() {
        let mut number = Message::default();
        number.number(1, 150);
        assert_eq!(number.0, [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.text(2, "testing");
        assert_eq!(text.0, b"\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, &number);
        assert_eq!(outer.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::default();
        negative.number(1, (-2_i64).cast_unsigned());
        assert_eq!(negative.into_bytes().len(), 11);
    }
}
