//! Small transforms in eight lanes: eight columns or eight rows side by side.
//!
//! Values are taken into lanes once, go through all layers there, two at a time ([`crate::kernels::lanes::field`] has the
//! butterflies and their bounds), and come out once. A shift before, and a twist after, are part of loading and storing.
//! Where there are no lanes, nothing is done, and said so. Memory: a buffer for each thread, of eight columns, or of a strip of
//! [`super::STRIP_BYTES`] if that is more, at 40 bytes a value. The thread keeps it, up to 2.5 MiB, until it is told to
//! [`forget`] it: fresh memory for every strip was half of a proof's page faults.

#[cfg(target_arch = "x86_64")]
pub(in crate::kernels) use lanes::{columns, factors, forget, rows};
#[cfg(not(target_arch = "x86_64"))]
pub(in crate::kernels) use none::{columns, factors, forget, rows};

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::cell::Cell;

    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::{Eight, Lanes};
    use crate::kernels::lanes::{Factor, Ifma, Kernel};
    use crate::kernels::ntt::{Twiddles, Twist};
    use crate::kernels::platform::Platform;

    const LANES: usize = 8;

    /// The most that a thread keeps of its buffer: rows, or eight columns, of 2^13 values.
    const KEPT_BYTES_MAX: usize = size_of::<Eight>() << 13;

    thread_local! {
        static BUFFER: Cell<Vec<Eight>> = const { Cell::new(Vec::new()) };
    }

    fn lanes<F: KernelField>() -> Option<(Ifma, Lanes<F>)> {
        if Platform::detect() != Platform::Avx512Ifma || !F::RADIX_52.is_some_and(|constants| constants.roomy)
        {
            return None;
        }
        let ifma = Ifma::detect()?;
        Some((ifma, Lanes::new(ifma)?))
    }

    /// Factors for lanes; none if there are no lanes.
    pub(in crate::kernels) fn factors<F: KernelField>(values: &[F]) -> Vec<Factor> {
        let Some(constants) = F::RADIX_52.filter(|_| lanes::<F>().is_some()) else {
            return Vec::new();
        };
        let sixteen = F::from(16u64);
        let factor = |value: &F| {
            let mut integer = [0; 4];
            integer.copy_from_slice(value.into_bigint().as_ref());
            constants.factor(integer, *value.times(&sixteen).montgomery_limbs())
        };
        values.iter().map(factor).collect()
    }

    /// Runs `work` with `len` vectors of any content.
    fn with_vectors<F: KernelField>(lanes: Lanes<F>, len: usize, work: impl FnOnce(&mut [Eight])) {
        let mut buffer = BUFFER.take();
        if buffer.len() < len {
            // What it holds is of no use: nothing need be moved.
            buffer = vec![lanes.unit(); len];
        }
        work(&mut buffer[..len]);
        if size_of_val(&buffer[..]) <= KEPT_BYTES_MAX {
            BUFFER.set(buffer);
        }
    }

    /// Lets this thread's buffer go.
    pub(in crate::kernels) fn forget() {
        drop(BUFFER.take());
    }

    /// All layers of transforms of `values.len() / width` points, `width` vectors side by side; carried and below 29 p before
    /// and after, output rows bit-reversed.
    #[inline(always)]
    fn layers<F: KernelField>(lanes: Lanes<F>, values: &mut [Eight], width: usize, factors: &[Factor]) {
        let points = values.len() / width;
        let mut blocks = 1;
        if points.trailing_zeros() % 2 == 1 {
            let (low, high) = values.split_at_mut(values.len() / 2);
            for (low, high) in low.iter_mut().zip(high) {
                lanes.butterfly_one(low, high);
            }
            blocks = 2;
        }
        while blocks < points {
            let block_len = values.len() / blocks;
            for (group, block) in values.chunks_exact_mut(block_len).enumerate() {
                let (low, high) = block.split_at_mut(block_len / 2);
                let (v0, v1) = low.split_at_mut(block_len / 4);
                let (v2, v3) = high.split_at_mut(block_len / 4);
                let four = v0.iter_mut().zip(v1).zip(v2.iter_mut().zip(v3));
                if group == 0 {
                    for ((v0, v1), (v2, v3)) in four {
                        lanes.two_layers_one([v0, v1, v2, v3], &factors[1]);
                    }
                } else {
                    let factors = [&factors[group], &factors[2 * group], &factors[2 * group + 1]];
                    for ((v0, v1), (v2, v3)) in four {
                        lanes.two_layers([v0, v1, v2, v3], factors);
                    }
                }
            }
            blocks *= 4;
        }
    }

    struct Columns<'a, 'b, F> {
        lanes: Lanes<F>,
        strip: &'a mut [&'b mut [F]],
        first_column: usize,
        twiddles: &'a Twiddles<F>,
        before: &'a [Factor],
        twist: Option<&'a Twist<F>>,
        /// One vector for each eight columns and row, and two more.
        buffer: &'a mut [Eight],
    }

    impl<F: KernelField> Kernel for Columns<'_, '_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let (points, columns) = (self.twiddles.size(), self.strip[0].len());
            let width = columns.div_ceil(LANES);
            let (values, running) = self.buffer.split_at_mut(points * width);
            for (r, (row, values)) in self.strip.iter().zip(values.chunks_exact_mut(width)).enumerate() {
                for (piece, value) in row.chunks(LANES).zip(values) {
                    // The lanes beyond the last column hold anything.
                    let mut all = [piece[0]; LANES];
                    let piece = match piece.len() {
                        LANES => piece,
                        len => {
                            all[..len].copy_from_slice(piece);
                            &all
                        }
                    };
                    *value = lanes.unpack(&lanes.gather_run(piece));
                    if let Some(factor) = self.before.get(r) {
                        *value = lanes.scaled_by(value, factor);
                    }
                }
            }
            layers(lanes, values, width, self.twiddles.factors());
            let (factors, steps) = running.split_at_mut(width);
            if let Some(twist) = self.twist {
                start(lanes, twist, self.first_column, factors, steps);
            }
            for (r, row) in self.strip.iter_mut().enumerate() {
                let from = self.twiddles.reverse(r) * width;
                let running = factors.iter_mut().zip(&*steps);
                let values = values[from..from + width].iter().zip(running);
                for (piece, (value, (factor, step))) in row.chunks_mut(LANES).zip(values) {
                    let settled = match self.twist {
                        Some(_) => {
                            // Below 29 p times below 2.1 p: the product below 3 p.
                            let product = lanes.product(value, factor);
                            *factor = lanes.product(factor, step);
                            lanes.settled(product)
                        }
                        None => lanes.settled(lanes.lowered(value)),
                    };
                    if piece.len() == LANES {
                        lanes.store_run(&settled, piece);
                    } else {
                        let mut all = [F::ZERO; LANES];
                        lanes.store_run(&settled, &mut all);
                        piece.copy_from_slice(&all[..piece.len()]);
                    }
                }
            }
        }
    }

    /// The factors of row 0, and the steps to the next row's, for eight columns each.
    #[inline(always)]
    fn start<F: KernelField>(
        lanes: Lanes<F>,
        twist: &Twist<F>,
        first_column: usize,
        factors: &mut [Eight],
        steps: &mut [Eight],
    ) {
        let column = twist.first_column + first_column as u64;
        // Products of lanes divide by 2^260, not 2^256.
        let sixteen = F::from(16u64);
        let mut step = twist.root.pow([column]).times(&twist.row).times(&sixteen);
        let per_column = twist.root.pow([twist.first_row]).times(&twist.base);
        let mut factor = per_column
            .pow([column])
            .times(&twist.row.pow([twist.first_row]))
            .times(&twist.scale)
            .times(&sixteen);
        for (factors, steps) in factors.iter_mut().zip(steps) {
            let (mut eight, mut eight_steps) = ([F::ZERO; LANES], [F::ZERO; LANES]);
            for (to, to_step) in eight.iter_mut().zip(&mut eight_steps) {
                (*to, *to_step) = (factor, step);
                factor = factor.times(&per_column);
                step = step.times(&twist.root);
            }
            *factors = lanes.unpack(&lanes.gather_run(&eight));
            *steps = lanes.unpack(&lanes.gather_run(&eight_steps));
        }
    }

    /// See [`crate::kernels::ntt::NttElement::columns_in_lanes`].
    pub(in crate::kernels) fn columns<F: KernelField>(
        strip: &mut [&mut [F]],
        first_column: usize,
        twiddles: &Twiddles<F>,
        before: &[Factor],
        twist: Option<&Twist<F>>,
    ) -> bool {
        let Some((ifma, lanes)) = lanes() else {
            return false;
        };
        let width = strip.first().map_or(0, |row| row.len()).div_ceil(LANES);
        if width == 0 {
            return true;
        }
        with_vectors(lanes, (twiddles.size() + 2) * width, |buffer| {
            ifma.run(Columns {
                lanes,
                strip,
                first_column,
                twiddles,
                before,
                twist,
                buffer,
            });
        });
        true
    }

    struct Rows<'a, 'b, F> {
        lanes: Lanes<F>,
        rows: &'a mut [&'b mut [F]; LANES],
        twiddles: &'a Twiddles<F>,
        middle: &'a [Factor],
        buffer: &'a mut [Eight],
    }

    impl<F: KernelField> Kernel for Rows<'_, '_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let Self {
                lanes, rows, buffer, ..
            } = self;
            let points = self.twiddles.size();
            for (i, value) in buffer.iter_mut().enumerate() {
                let [r0, r1, r2, r3, r4, r5, r6, r7] = &*rows;
                let eight = [&r0[i], &r1[i], &r2[i], &r3[i], &r4[i], &r5[i], &r6[i], &r7[i]];
                *value = lanes.unpack(&lanes.gather(eight));
            }
            if !self.middle.is_empty() {
                let (low, high) = buffer.split_at_mut(points);
                for ((low, high), factor) in low.iter_mut().zip(high).zip(self.middle) {
                    lanes.butterfly_one(low, high);
                    *high = lanes.scaled_by(high, factor);
                }
            }
            for (part, values) in buffer.chunks_exact_mut(points).enumerate() {
                layers(lanes, values, 1, self.twiddles.factors());
                for i in 0..points {
                    let value = lanes.settled(lanes.lowered(&values[self.twiddles.reverse(i)]));
                    let at = part * points + i;
                    let [r0, r1, r2, r3, r4, r5, r6, r7] = &mut *rows;
                    let eight = [
                        &mut r0[at],
                        &mut r1[at],
                        &mut r2[at],
                        &mut r3[at],
                        &mut r4[at],
                        &mut r5[at],
                        &mut r6[at],
                        &mut r7[at],
                    ];
                    lanes.scatter_to(&lanes.pack(&value), eight);
                }
            }
        }
    }

    /// See [`crate::kernels::ntt::NttElement::rows_in_lanes`].
    pub(in crate::kernels) fn rows<F: KernelField>(
        rows: &mut [&mut [F]],
        twiddles: &Twiddles<F>,
        middle: &[Factor],
    ) -> bool {
        let Some((ifma, lanes)) = lanes() else {
            return false;
        };
        let Some(len) = rows.first().map(|row| row.len()) else {
            return true;
        };
        with_vectors(lanes, len, |buffer| {
            for rows in rows.chunks_mut(LANES) {
                // Too few for eight lanes: the last ones work on rows of nobody.
                let mut spare = vec![vec![F::ZERO; len]; LANES - rows.len()];
                let mut rows = rows.iter_mut().map(|row| &mut **row);
                let mut spare = spare.iter_mut().map(|row| &mut row[..]);
                let mut eight: [&mut [F]; LANES] =
                    std::array::from_fn(|_| rows.next().or_else(|| spare.next()).unwrap_or_default());
                ifma.run(Rows {
                    lanes,
                    rows: &mut eight,
                    twiddles,
                    middle,
                    buffer: &mut *buffer,
                });
            }
        });
        true
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::Factor;
    use crate::kernels::ntt::{Twiddles, Twist};

    pub(in crate::kernels) fn factors<F: KernelField>(_: &[F]) -> Vec<Factor> {
        Vec::new()
    }

    pub(in crate::kernels) fn forget() {}

    pub(in crate::kernels) fn columns<F: KernelField>(
        _: &mut [&mut [F]],
        _: usize,
        _: &Twiddles<F>,
        _: &[Factor],
        _: Option<&Twist<F>>,
    ) -> bool {
        false
    }

    pub(in crate::kernels) fn rows<F: KernelField>(
        _: &mut [&mut [F]],
        _: &Twiddles<F>,
        _: &[Factor],
    ) -> bool {
        false
    }
}
