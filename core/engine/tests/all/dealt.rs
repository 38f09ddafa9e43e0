//! Transforms of columns that are dealt to ranks, beside arkworks, and what they send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ark_bn254::Fr;
use ark_ff::Field;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use spillproof_engine::Result;
use spillproof_engine::accelerator::{self, Accelerator, Answer, Coset, Half, Lines, Panel, Sums, Totals};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Element, Placement, Workspace, Writer};
use spillproof_engine::stream::{Deal, DealtTransforms, Transform, transform_twice};
use spillproof_ranks::{Ranks, Settings, one_process};
use spillproof_testing::columns::{place, scalars};

fn less(a: &mut [Fr], others: &[&[Fr]]) {
    for ((a, b), c) in a.iter_mut().zip(others[0]).zip(others[1]) {
        *a = *a * b - c;
    }
}

/// From values on a domain to values on its coset.
struct Quotient {
    log_n: u32,
    values: [Vec<Fr>; 3],
    transforms: [Transform<Fr>; 2],
    wanted: Vec<Fr>,
}

impl Quotient {
    fn new(log_n: u32) -> Self {
        let n = 1usize << log_n;
        let values = [1, 2, 3].map(|seed| scalars(n, seed + u64::from(log_n)));
        let domain = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
        let shift = Fr::from(7u64);
        let coset = domain.get_coset(shift).unwrap();
        let on_coset = values.each_ref().map(|values| coset.fft(&domain.ifft(values)));
        let mut wanted = on_coset[0].clone();
        less(&mut wanted, &[&on_coset[1], &on_coset[2]]);
        let to_coefficients = Transform {
            after: shift,
            ..Transform::inverse(log_n, domain.group_gen).unwrap()
        };
        Self {
            log_n,
            values,
            transforms: [to_coefficients, Transform::forward(log_n, domain.group_gen)],
            wanted,
        }
    }

    /// The output of one rank.
    fn part(
        &self,
        ranks: &Ranks,
        deal: &Deal,
        workspace: &Workspace,
        budget_bytes: u64,
    ) -> Result<Column<Fr>> {
        let dealt = DealtTransforms::agree(ranks, deal, self.transforms.each_ref(), 3, budget_bytes)?;
        let columns = deal.columns(ranks.rank());
        let inputs: Vec<_> = self
            .values
            .iter()
            .map(|values| {
                let rows = values.chunks(deal.row_len() as usize);
                let share: Vec<Fr> = rows
                    .flat_map(|row| &row[columns.start as usize..columns.end as usize])
                    .copied()
                    .collect();
                spillproof_testing::columns::column_in(workspace, &share, Placement::Disk)
            })
            .collect();
        let rows = dealt.first_pass(inputs)?.run()?;
        let columns = dealt.middle_pass(rows)?.run()?;
        dealt.last_pass(&columns, &less, Placement::Disk)
    }

    /// The elements of the output, by their index.
    fn check(&self, ranks: &Ranks, deal: &Deal, budget_bytes: u64, output: &Column<Fr>) {
        let dealt = DealtTransforms::agree(ranks, deal, self.transforms.each_ref(), 3, budget_bytes).unwrap();
        let (first, output) = (deal.columns(ranks.rank()).start, output.to_vec().unwrap());
        let rows = self.wanted.len() as u64 / deal.row_len();
        let mut given = output.iter();
        for (start, width) in dealt.output_groups() {
            for (row, column) in (0..rows).flat_map(|row| (0..width).map(move |column| (row, column))) {
                let index = row * deal.row_len() + first + start + column;
                assert_eq!(
                    given.next(),
                    Some(&self.wanted[index as usize]),
                    "2^{}, {index}",
                    self.log_n
                );
            }
        }
        assert_eq!(given.next(), None);
    }
}

/// Runs `work` on each rank, with a ledger of its own.
fn on_ranks(size: usize, piece_bytes: usize, budget_bytes: u64, work: impl Fn(&Ranks, &Workspace) + Sync) {
    std::thread::scope(|scope| {
        for rank in one_process(size) {
            let (work, transport) = (&work, Arc::new(rank));
            scope.spawn(move || {
                let settings = Settings {
                    timeout: Duration::from_secs(60),
                    piece_bytes,
                    ..Settings::default()
                };
                let ranks = Ranks::new(transport, settings).unwrap();
                let place = place(budget_bytes);
                work(&ranks, &place.workspace);
            });
        }
    });
}

#[test]
fn dealt_transforms_are_arkworks_for_every_number_of_ranks() {
    for log_n in [4, 5, 8, 9, 11, 14] {
        let quotient = Quotient::new(log_n);
        for weights in [&[1][..], &[1, 1], &[1, 2, 3], &[1; 4], &[3, 0, 1, 1, 1, 9, 1, 1]] {
            let deal = Deal::new(log_n, weights).unwrap();
            for (budget_bytes, piece_bytes) in [(64 << 20, 1 << 20), (1 << 21, 4096)] {
                on_ranks(weights.len(), piece_bytes, 64 << 20, |ranks, workspace| {
                    let output = quotient.part(ranks, &deal, workspace, budget_bytes).unwrap();
                    quotient.check(ranks, &deal, budget_bytes, &output);
                });
            }
        }
    }
}

/// Makes panels by the formulas of their halves; every other one it leaves when half of its columns are written.
#[derive(Debug, Default)]
struct ByFormulas {
    panels: AtomicUsize,
}

/// A half of the columns of a panel, row after row.
fn half_of(values: &[Fr], panel: &Panel<'_>, half: &Half) -> Vec<Fr> {
    let (r, width) = (1u64 << panel.log_rows, 1u64 << panel.log_columns);
    let c = 1u64 << (half.log_n - panel.log_rows);
    let element = |k: u64, at: u64| {
        let j = panel.first_column + at;
        let term = |i: u64| {
            let shift = if half.is_second {
                Fr::ONE
            } else {
                half.before.pow([c * i + j])
            };
            values[(i * width + at) as usize] * shift * half.omega.pow([c * i * k])
        };
        let sum: Fr = (0..r).map(term).sum();
        match half.is_second {
            true => sum * half.after.pow([c * k + j]),
            false => sum * half.scale * half.omega.pow([k * j]),
        }
    };
    (0..r)
        .flat_map(|k| (0..width).map(move |at| element(k, at)))
        .collect()
}

impl Accelerator for ByFormulas {
    fn sums(&self, _: &mut Sums<'_>, _: &Budget) -> Result<Answer<Totals>> {
        Ok(Answer::Declined("panels only".into()))
    }

    fn transform(&self, _: &mut accelerator::Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("panels only".into()))
    }

    fn quotient(&self, _: &mut Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("panels only".into()))
    }

    fn panel(&self, job: &mut Panel<'_>, _: &Budget) -> Result<Answer<()>> {
        const BYTES: usize = 32;
        let (r, width) = (1usize << job.log_rows, 1usize << job.log_columns);
        let lines = Lines {
            first: 0,
            step: width as u64,
            count: r as u64,
        };
        let mut bytes = vec![0; r * width * BYTES];
        job.input.read_lines(lines, &mut bytes)?;
        let mut values: Vec<Fr> = bytes.chunks_exact(BYTES).map(Fr::decode).collect();
        for half in &job.halves {
            values = half_of(&values, job, half);
        }
        let stops = self.panels.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let written = if stops { width.div_ceil(2) } else { width };
        let rows = values.chunks(width).flat_map(|row| &row[..written]);
        let bytes: Vec<u8> = rows
            .flat_map(|value| {
                let mut bytes = [0; BYTES];
                value.encode(&mut bytes);
                bytes
            })
            .collect();
        job.output.write_lines(lines, &bytes)?;
        Ok(match stops {
            true => Answer::Declined("half way".into()),
            false => Answer::Done(()),
        })
    }
}

/// Whatever an accelerator leaves half done, each rank's output is the same.
#[test]
fn panels_of_an_accelerator_are_those_of_the_processor() {
    for log_n in [5, 8, 9] {
        let quotient = Quotient::new(log_n);
        for weights in [&[1][..], &[1, 1], &[1, 2, 3]] {
            let deal = Deal::new(log_n, weights).unwrap();
            for budget_bytes in [64 << 20, 1 << 21] {
                let accelerator = Arc::new(ByFormulas::default());
                on_ranks(weights.len(), 4096, 64 << 20, |ranks, workspace| {
                    let accelerator = Arc::clone(&accelerator) as Arc<dyn Accelerator>;
                    let workspace = workspace.clone().with_accelerator(accelerator);
                    let output = quotient.part(ranks, &deal, &workspace, budget_bytes).unwrap();
                    quotient.check(ranks, &deal, budget_bytes, &output);
                });
                assert!(accelerator.panels.load(Ordering::Relaxed) >= 9, "2^{log_n}");
            }
        }
    }
}

#[test]
fn a_rank_sends_its_share_for_others_and_a_dry_run_counts_it() {
    let (log_n, size) = (14, 4);
    let quotient = Quotient::new(log_n);
    let deal = Deal::new(log_n, &vec![1; size]).unwrap();
    let sent = |ranks: &Ranks| -> u64 {
        let traffic = ranks.traffic();
        let exchanges = traffic.iter().filter(|phase| phase.name == "exchange");
        exchanges.map(|phase| phase.sent_bytes).sum()
    };
    on_ranks(size, 1 << 20, 64 << 20, |ranks, workspace| {
        let part = |ranks: &Ranks, workspace: &Workspace| {
            let _step = spillproof_engine::step!(workspace, "dealt transforms");
            let dealt = DealtTransforms::agree(ranks, &deal, quotient.transforms.each_ref(), 3, 1 << 22)?;
            let columns = || -> Result<_> {
                let mut writer = Writer::scratch(workspace, "values", 1 << (log_n - 2), Placement::Disk)?;
                if !workspace.is_dry() {
                    writer.push(&vec![Fr::ONE; 1 << (log_n - 2)])?;
                }
                writer.finish()
            };
            let inputs = vec![columns()?, columns()?, columns()?];
            let redeal = dealt.first_pass(inputs)?;
            let _phase = ranks.phase("exchange");
            let held = workspace.is_dry().then(|| redeal.hold(workspace)).transpose()?;
            let rows = redeal.run()?;
            drop(held);
            let redeal = dealt.middle_pass(rows)?;
            let columns = redeal.run()?;
            dealt.last_pass(&columns, &less, Placement::Disk)
        };
        let before = workspace.storage.stats().bytes_written;
        part(ranks, workspace).unwrap();
        let written = workspace.storage.stats().bytes_written - before;
        let peak_bytes = workspace.budget.peak_bytes();
        // Two exchanges of three columns, of which a quarter is this rank's, and a quarter of that its own.
        assert_eq!(sent(ranks), 2 * 3 * 32 * (1 << log_n) / 4 * 3 / 4);

        let dry = Workspace::dry(Budget::new(64 << 20));
        let dry_ranks = ranks.rehearsal();
        part(&dry_ranks, &dry).unwrap();
        assert_eq!(
            dry_ranks
                .traffic()
                .iter()
                .map(|phase| phase.sent_bytes)
                .sum::<u64>(),
            ranks.traffic().iter().map(|phase| phase.sent_bytes).sum::<u64>()
        );
        let steps = dry.dry_run().unwrap().steps();
        let planned: u64 = steps.iter().map(|step| step.bytes_written).sum();
        assert_eq!(planned, written);
        let planned_peak = dry.budget.peak_bytes();
        assert!(
            planned_peak >= peak_bytes && planned_peak - peak_bytes <= planned_peak / 10,
            "{planned_peak} planned, {peak_bytes} held"
        );
    });
}

#[test]
fn one_rank_alone_needs_no_transport() {
    let quotient = Quotient::new(10);
    let deal = Deal::new(10, &[1]).unwrap();
    let place = place(32 << 20);
    let ranks = Ranks::alone();
    let output = quotient.part(&ranks, &deal, &place.workspace, 4 << 20).unwrap();
    quotient.check(&ranks, &deal, 4 << 20, &output);
    let inputs = [0, 1, 2].map(|i| place.column(&quotient.values[i]));
    let whole = transform_twice(inputs, quotient.transforms.each_ref(), &less, Placement::Disk).unwrap();
    assert_eq!(whole.to_vec().unwrap(), quotient.wanted);
}
