//! Runs code compiled for the widest SIMD instructions of the CPU, chosen at run time.

/// Running sums side by side: as many as the widest vector register holds, so that plain loops over them are vectorised.
/// Fixed, so that the order of additions does not depend on the machine.
pub(crate) const LANES: usize = 16;

/// Run `work` compiled for the machine's widest vector instructions, so that plain loops inside it
/// are vectorised with them. `work` and all it calls must be `#[inline(always)]` or small.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    struct Work<F>(F);
    impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Work<F> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Work(work))
}
