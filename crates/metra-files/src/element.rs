//! The number types vectors are stored as, and how one row of them is passed to the sink.

use std::fmt;

/// The type of a vector's numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// 16-bit floating point.
    F16,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// Signed 8-bit integers.
    I8,
    /// Signed 16-bit integers.
    I16,
    /// Signed 32-bit integers.
    I32,
    /// Unsigned 8-bit integers.
    U8,
    /// Unsigned 16-bit integers.
    U16,
    /// Decimal text, read as 64-bit floating point.
    Text,
}

impl ElementType {
    /// Whether f32 holds every value of the type, so that nothing is lost by reading it as f32.
    pub(crate) fn fits_f32(self) -> bool {
        !matches!(
            self,
            ElementType::F64 | ElementType::I32 | ElementType::Text
        )
    }

    /// Bytes of one number; for text, of what it becomes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            ElementType::I8 | ElementType::U8 => 1,
            ElementType::F16 | ElementType::I16 | ElementType::U16 => 2,
            ElementType::F32 | ElementType::I32 => 4,
            ElementType::F64 | ElementType::Text => 8,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementType::F16 => "f16",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::U8 => "u8",
            ElementType::U16 => "u16",
            ElementType::Text => "text",
        })
    }
}

/// One vector between reader and sink: as f32 where that is exact, as f64 where it must be judged first.
pub(crate) enum Vector {
    Exact(Vec<f32>),
    Wide(Vec<f64>),
}

impl Vector {
    pub(crate) fn of(element: ElementType) -> Self {
        if element.fits_f32() {
            Vector::Exact(Vec::new())
        } else {
            Vector::Wide(Vec::new())
        }
    }

    /// Place of the first number that is missing.
    pub(crate) fn first_missing(&self) -> Option<usize> {
        match self {
            Vector::Exact(values) => values.iter().position(|value| value.is_nan()),
            Vector::Wide(values) => values.iter().position(|value| value.is_nan()),
        }
    }

    /// Say that a number is missing.
    pub(crate) fn set_missing(&mut self, index: usize) {
        match self {
            Vector::Exact(values) => values[index] = f32::NAN,
            Vector::Wide(values) => values[index] = f64::NAN,
        }
    }

    /// Replace the content by `numbers`.
    pub(crate) fn fill<N: Number>(&mut self, numbers: impl Iterator<Item = N>) {
        self.clear();
        self.append(numbers);
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Vector::Exact(values) => values.clear(),
            Vector::Wide(values) => values.clear(),
        }
    }

    /// Put `numbers` behind the content.
    pub(crate) fn append<N: Number>(&mut self, numbers: impl Iterator<Item = N>) {
        match self {
            Vector::Exact(values) => values.extend(numbers.map(Number::narrow)),
            Vector::Wide(values) => values.extend(numbers.map(Number::wide)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Vector::Exact(values) => values.len(),
            Vector::Wide(values) => values.len(),
        }
    }
}

/// A number of a file. `narrow` is called only for types that [`ElementType::fits_f32`].
pub(crate) trait Number: Copy {
    fn narrow(self) -> f32;
    fn wide(self) -> f64;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn narrow(self) -> f32 {
                self as f32
            }
            fn wide(self) -> f64 {
                self as f64
            }
        }
    )*};
}
number!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl Number for half::f16 {
    fn narrow(self) -> f32 {
        self.to_f32()
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
}
