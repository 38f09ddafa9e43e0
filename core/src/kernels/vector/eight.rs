//! Products in eight lanes, on native limbs.
//!
//! Lanes divide a product by 2^260, native form asks for 2^256: one operand is taken 16 times, by shifting limbs on the way
//! in, or a constant is multiplied by 16 once. Bounds, in multiples of p < 2^255: operands 16 and 1, their product below
//! 2.5 (`lanes::field`), with a summand below 3.5: what `settled` takes. Each function gives how many elements it has done,
//! whole groups of eight from the start; none if the machine or the field has no lanes.

#[cfg(target_arch = "x86_64")]
pub(super) use lanes::{product, scaled, scaled_sum};
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::{product, scaled, scaled_sum};

#[cfg(target_arch = "x86_64")]
mod lanes {
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::Lanes;
    use crate::kernels::lanes::{Ifma, Kernel};

    const LANES: usize = 8;

    fn run<K: Kernel>(len: usize, kernel: impl FnOnce() -> Option<(Ifma, K)>) -> usize {
        if len < LANES {
            return 0;
        }
        match kernel() {
            Some((ifma, kernel)) => {
                ifma.run(kernel);
                len - len % LANES
            }
            None => 0,
        }
    }

    fn lanes<F: KernelField>() -> Option<(Ifma, Lanes<F>)> {
        let ifma = Ifma::detect()?;
        Some((ifma, Lanes::new(ifma)?))
    }

    struct Product<'a, F> {
        lanes: Lanes<F>,
        to: &'a mut [F],
        a: &'a [F],
        b: &'a [F],
    }

    impl<F: KernelField> Kernel for Product<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let operands = self.a.chunks_exact(LANES).zip(self.b.chunks_exact(LANES));
            for (to, (a, b)) in self.to.chunks_exact_mut(LANES).zip(operands) {
                let a = lanes.unpack_sixteenfold(&lanes.gather_run(a));
                let b = lanes.unpack(&lanes.gather_run(b));
                lanes.store_run(&lanes.settled(lanes.product(&a, &b)), to);
            }
        }
    }

    /// `to = a * b`.
    pub(in super::super) fn product<F: KernelField>(to: &mut [F], a: &[F], b: &[F]) -> usize {
        let (len, a, b) = (to.len(), &a[..to.len()], &b[..to.len()]);
        run(len, || {
            let (ifma, lanes) = lanes()?;
            Some((ifma, Product { lanes, to, a, b }))
        })
    }

    struct Scaled<'a, F> {
        lanes: Lanes<F>,
        to: &'a mut [F],
        a: &'a [F],
        factor: F,
        /// Added, if there is one.
        b: Option<&'a [F]>,
    }

    impl<F: KernelField> Kernel for Scaled<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let factor = lanes.splat(&self.factor.times(&F::from(16u64)));
            let operands = self.a.chunks_exact(LANES).enumerate();
            for (to, (i, a)) in self.to.chunks_exact_mut(LANES).zip(operands) {
                let mut scaled = lanes.product(&lanes.unpack(&lanes.gather_run(a)), &factor);
                if let Some(b) = self.b {
                    let b = lanes.unpack(&lanes.gather_run(&b[i * LANES..]));
                    scaled = lanes.sum(&scaled, &b);
                }
                lanes.store_run(&lanes.settled(scaled), to);
            }
        }
    }

    /// `to = a * factor`.
    pub(in super::super) fn scaled<F: KernelField>(to: &mut [F], a: &[F], factor: &F) -> usize {
        let (len, a, factor, b) = (to.len(), &a[..to.len()], *factor, None);
        run(len, || {
            let (ifma, lanes) = lanes()?;
            Some((
                ifma,
                Scaled {
                    lanes,
                    to,
                    a,
                    factor,
                    b,
                },
            ))
        })
    }

    /// `to = a * factor + b`.
    pub(in super::super) fn scaled_sum<F: KernelField>(to: &mut [F], a: &[F], factor: &F, b: &[F]) -> usize {
        let (len, a, factor, b) = (to.len(), &a[..to.len()], *factor, Some(&b[..to.len()]));
        run(len, || {
            let (ifma, lanes) = lanes()?;
            Some((
                ifma,
                Scaled {
                    lanes,
                    to,
                    a,
                    factor,
                    b,
                },
            ))
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use crate::kernels::field::KernelField;

    pub(in super::super) fn product<F: KernelField>(_: &mut [F], _: &[F], _: &[F]) -> usize {
        0
    }

    pub(in super::super) fn scaled<F: KernelField>(_: &mut [F], _: &[F], _: &F) -> usize {
        0
    }

    pub(in super::super) fn scaled_sum<F: KernelField>(_: &mut [F], _: &[F], _: &F, _: &[F]) -> usize {
        0
    }
}
