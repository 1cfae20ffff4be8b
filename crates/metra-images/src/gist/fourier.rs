//! The one way in which filters transform lines.

use rustfft::Fft;
use rustfft::num_complex::Complex32;

/// Transform lines in place, with scratch memory that grows once.
pub(super) fn transform(fft: &dyn Fft<f32>, lines: &mut [Complex32], scratch: &mut Vec<Complex32>) {
    scratch.resize(fft.get_inplace_scratch_len(), Complex32::ZERO);
    fft.process_with_scratch(lines, scratch);
}
