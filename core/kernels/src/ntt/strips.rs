//! Small transforms in wide lanes: as many columns or rows side by side as there are lanes.
//!
//! Values are taken into lanes once, go through all layers there, two at a time
//! ([`crate::backend::WideLanes`] has the butterflies, and their bounds), and come out once. A shift before,
//! and a twist after, are part of loading and storing. Where there are no such lanes, nothing is done, and
//! the caller is told. Memory: a buffer for each thread, of one vector of columns, or of a strip of
//! [`super::STRIP_BYTES`] if that is more. The thread keeps it until it is told to forget it.

use crate::backend::{Backend, Factor, WideKernel, WideLanes};
use crate::field::KernelField;
use crate::ntt::{Twiddles, Twist};

pub struct Factors<'a, F>(&'a [F]);

impl<F: KernelField> WideKernel<F> for Factors<'_, F> {
    type Output = Vec<Factor>;

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) -> Vec<Factor> {
        self.0.iter().map(|value| lanes.factor(value)).collect()
    }
}

/// Factors for wide lanes; none if there are no such lanes.
pub(super) fn factors<F: KernelField>(values: &[F]) -> Vec<Factor> {
    F::run_factors(Backend::detect(), Factors(values)).unwrap_or_default()
}

/// All layers of transforms of `values.len() / width` points, `width` vectors side by side; carried and below
/// 29 p before and after, output rows bit-reversed.
#[inline(always)]
fn layers<F: KernelField, const W: usize, L: WideLanes<F, W>>(
    lanes: L,
    values: &mut [L::Kept],
    width: usize,
    factors: &[Factor],
) {
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

pub struct Columns<'a, 'b, F> {
    strip: &'a mut [&'b mut [F]],
    first_column: usize,
    twiddles: &'a Twiddles<F>,
    before: &'a [Factor],
    twist: Option<&'a Twist<F>>,
}

impl<F: KernelField> WideKernel<F> for Columns<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) {
        let (points, columns) = (self.twiddles.size(), self.strip[0].len());
        let width = columns.div_ceil(W);
        // One vector for each W columns and row, and two more.
        let mut buffer = lanes.take_buffer((points + 2) * width);
        let (values, running) = buffer.split_at_mut(points * width);
        for (r, (row, values)) in self.strip.iter().zip(values.chunks_exact_mut(width)).enumerate() {
            for (piece, value) in row.chunks(W).zip(values) {
                let mut loaded = lanes.load(piece);
                if let Some(factor) = self.before.get(r) {
                    loaded = lanes.scaled(&loaded, factor);
                }
                *value = lanes.keep(&loaded);
            }
        }
        layers(lanes, values, width, self.twiddles.factors());
        let (factors, steps) = running[..2 * width].split_at_mut(width);
        if let Some(twist) = self.twist {
            start(lanes, twist, self.first_column, factors, steps);
        }
        for (r, row) in self.strip.iter_mut().enumerate() {
            let from = self.twiddles.reverse(r) * width;
            let running = factors.iter_mut().zip(&*steps);
            let values = values[from..from + width].iter().zip(running);
            for (piece, (value, (factor, step))) in row.chunks_mut(W).zip(values) {
                let value = lanes.kept(value);
                let reduced = match self.twist {
                    Some(_) => {
                        // Below 29 p times below 2.1 p: the product below 4 p.
                        let running = lanes.kept(factor);
                        let product = lanes.product(&value, &running);
                        *factor = lanes.keep(&lanes.product(&running, &lanes.kept(step)));
                        lanes.canonical(product)
                    }
                    None => lanes.canonical(lanes.lowered(&value)),
                };
                lanes.store(&reduced, piece);
            }
        }
        lanes.keep_buffer(buffer);
    }
}

/// The factors of row 0, and the steps to the next row's, for W columns each.
#[inline(always)]
fn start<F: KernelField, const W: usize, L: WideLanes<F, W>>(
    lanes: L,
    twist: &Twist<F>,
    first_column: usize,
    factors: &mut [L::Kept],
    steps: &mut [L::Kept],
) {
    let column = twist.first_column + first_column as u64;
    let mut step = lanes.shifted(&twist.root.pow([column]).times(&twist.row));
    let per_column = twist.root.pow([twist.first_row]).times(&twist.base);
    let factor = per_column
        .pow([column])
        .times(&twist.row.pow([twist.first_row]))
        .times(&twist.scale);
    let mut factor = lanes.shifted(&factor);
    for (factors, steps) in factors.iter_mut().zip(steps) {
        let (mut run, mut run_steps) = ([F::ZERO; W], [F::ZERO; W]);
        for (to, to_step) in run.iter_mut().zip(&mut run_steps) {
            (*to, *to_step) = (factor, step);
            factor = factor.times(&per_column);
            step = step.times(&twist.root);
        }
        *factors = lanes.keep(&lanes.load(&run));
        *steps = lanes.keep(&lanes.load(&run_steps));
    }
}

/// See [`crate::ntt::NttElement::columns_in_lanes`].
pub(super) fn columns<F: KernelField>(
    strip: &mut [&mut [F]],
    first_column: usize,
    twiddles: &Twiddles<F>,
    before: &[Factor],
    twist: Option<&Twist<F>>,
) -> bool {
    if strip.first().is_none_or(|row| row.is_empty()) {
        return true;
    }
    let columns = Columns {
        strip,
        first_column,
        twiddles,
        before,
        twist,
    };
    F::run_columns(Backend::detect(), columns).is_some()
}

pub struct Rows<'a, 'b, F> {
    rows: &'a mut [&'b mut [F]],
    twiddles: &'a Twiddles<F>,
    middle: &'a [Factor],
}

impl<F: KernelField> WideKernel<F> for Rows<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) {
        let Some(len) = self.rows.first().map(|row| row.len()) else {
            return;
        };
        let points = self.twiddles.size();
        let mut buffer = lanes.take_buffer(len);
        let values = &mut buffer[..len];
        for rows in self.rows.chunks_mut(W) {
            // Too few for all lanes: the last ones work on rows that are dropped.
            let mut spare = vec![vec![F::ZERO; len]; W - rows.len()];
            let mut rows = rows.iter_mut().map(|row| &mut **row);
            let mut spare = spare.iter_mut().map(|row| &mut row[..]);
            let mut rows: [&mut [F]; W] =
                std::array::from_fn(|_| rows.next().or_else(|| spare.next()).unwrap_or_default());
            for (i, value) in values.iter_mut().enumerate() {
                let native = lanes.gather(rows.each_ref().map(|row| &row[i]));
                *value = lanes.keep(&lanes.unpack(&native));
            }
            if !self.middle.is_empty() {
                let (low, high) = values.split_at_mut(points);
                for ((low, high), factor) in low.iter_mut().zip(high).zip(self.middle) {
                    lanes.butterfly_one(low, high);
                    *high = lanes.keep(&lanes.scaled(&lanes.kept(high), factor));
                }
            }
            for (part, values) in values.chunks_exact_mut(points).enumerate() {
                layers(lanes, values, 1, self.twiddles.factors());
                for i in 0..points {
                    let value = lanes.kept(&values[self.twiddles.reverse(i)]);
                    let value = lanes.canonical(lanes.lowered(&value));
                    let at = part * points + i;
                    lanes.scatter(&value, rows.each_mut().map(|row| &mut row[at]));
                }
            }
        }
        lanes.keep_buffer(buffer);
    }
}

/// See [`crate::ntt::NttElement::rows_in_lanes`].
pub(super) fn rows<F: KernelField>(rows: &mut [&mut [F]], twiddles: &Twiddles<F>, middle: &[Factor]) -> bool {
    let rows = Rows {
        rows,
        twiddles,
        middle,
    };
    F::run_rows(Backend::detect(), rows).is_some()
}
