//! Butterflies and products of runs in eight lanes, in place.
//!
//! Bounds, in multiples of p: values that come in are relaxed, so below 4 where p < 2^254 and below 1 in other fields
//! ([`crate::kernels::field`]). The product of 16 times such a value with a settled factor is at most 64 p^2 and p < R / 64,
//! or 16 p^2 and p < R / 32, so below 3 ([`crate::kernels::lanes`] has the multiplier's bounds). Of a butterfly both operands
//! are then taken below 2; sum and difference plus 2 p are below 4 again. A scaled value is settled.
//!
//! Each function gives how many elements it has done, whole groups of eight from the start; none if the machine or the
//! field has no lanes.

#[cfg(target_arch = "x86_64")]
pub(in crate::kernels) use lanes::{butterflies, scale_each, scale_run};
#[cfg(not(target_arch = "x86_64"))]
pub(in crate::kernels) use none::{butterflies, scale_each, scale_run};

#[cfg(target_arch = "x86_64")]
mod lanes {
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::Lanes;
    use crate::kernels::lanes::{Ifma, Kernel};
    use crate::kernels::platform::Platform;

    const LANES: usize = 8;

    fn lanes<F: KernelField>() -> Option<(Ifma, Lanes<F>)> {
        if Platform::detect() != Platform::Avx512Ifma {
            return None;
        }
        let ifma = Ifma::detect()?;
        Some((ifma, Lanes::new(ifma)?))
    }

    struct Butterflies<'a, F> {
        lanes: Lanes<F>,
        low: &'a mut [F],
        high: &'a mut [F],
        factor: &'a F,
    }

    impl<F: KernelField> Kernel for Butterflies<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let factor = lanes.splat(self.factor);
            let pairs = self
                .low
                .chunks_exact_mut(LANES)
                .zip(self.high.chunks_exact_mut(LANES));
            for (low, high) in pairs {
                let product = lanes.product(&lanes.unpack_sixteenfold(&lanes.gather_run(high)), &factor);
                let product = lanes.below_two_p(&product);
                let first = lanes.below_two_p(&lanes.unpack(&lanes.gather_run(low)));
                lanes.store_run(&lanes.carried(lanes.sum(&first, &product)), low);
                lanes.store_run(&lanes.carried(lanes.difference(&first, &product, 2)), high);
            }
        }
    }

    /// `(low, high) <- (low + factor * high, low - factor * high)`, for a field with 4p < 2^256.
    pub(in crate::kernels) fn butterflies<F: KernelField>(
        low: &mut [F],
        high: &mut [F],
        factor: &F,
    ) -> usize {
        let len = low.len().min(high.len());
        let Some((ifma, lanes)) = lanes().filter(|_| len >= LANES) else {
            return 0;
        };
        let (low, high) = (&mut low[..len], &mut high[..len]);
        ifma.run(Butterflies {
            lanes,
            low,
            high,
            factor,
        });
        len - len % LANES
    }

    struct ScaleRun<'a, F> {
        lanes: Lanes<F>,
        values: &'a mut [F],
        factor: &'a F,
    }

    impl<F: KernelField> Kernel for ScaleRun<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let factor = lanes.splat(self.factor);
            for values in self.values.chunks_exact_mut(LANES) {
                let product = lanes.product(&lanes.unpack_sixteenfold(&lanes.gather_run(values)), &factor);
                lanes.store_run(&lanes.settled(product), values);
            }
        }
    }

    /// `values <- values * factor`.
    pub(in crate::kernels) fn scale_run<F: KernelField>(values: &mut [F], factor: &F) -> usize {
        let len = values.len();
        let Some((ifma, lanes)) = lanes().filter(|_| len >= LANES) else {
            return 0;
        };
        ifma.run(ScaleRun {
            lanes,
            values,
            factor,
        });
        len - len % LANES
    }

    struct ScaleEach<'a, F> {
        lanes: Lanes<F>,
        values: &'a mut [F],
        factors: &'a [F],
    }

    impl<F: KernelField> Kernel for ScaleEach<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let factors = self.factors.chunks_exact(LANES);
            for (values, factors) in self.values.chunks_exact_mut(LANES).zip(factors) {
                let values_in = lanes.unpack_sixteenfold(&lanes.gather_run(values));
                let product = lanes.product(&values_in, &lanes.unpack(&lanes.gather_run(factors)));
                lanes.store_run(&lanes.settled(product), values);
            }
        }
    }

    /// `values[i] <- values[i] * factors[i]`.
    pub(in crate::kernels) fn scale_each<F: KernelField>(values: &mut [F], factors: &[F]) -> usize {
        let len = values.len().min(factors.len());
        let Some((ifma, lanes)) = lanes().filter(|_| len >= LANES) else {
            return 0;
        };
        let values = &mut values[..len];
        ifma.run(ScaleEach {
            lanes,
            values,
            factors,
        });
        len - len % LANES
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use crate::kernels::field::KernelField;

    pub(in crate::kernels) fn butterflies<F: KernelField>(_: &mut [F], _: &mut [F], _: &F) -> usize {
        0
    }

    pub(in crate::kernels) fn scale_run<F: KernelField>(_: &mut [F], _: &F) -> usize {
        0
    }

    pub(in crate::kernels) fn scale_each<F: KernelField>(_: &mut [F], _: &[F]) -> usize {
        0
    }
}
