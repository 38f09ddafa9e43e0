//! Range checks and a table of exclusive-or: four lookups, one of them over three columns, one over a
//! compound expression.
//!
//! Columns: advice `low high word x y z sum`; fixed: a range table, a table `(x, y, x xor y)`, and two
//! selectors (6 in all, once selectors are fixed columns); one instance; `sum` and the instance are permuted.
//!
//! A range entry has `b = min(k - 1, 16)` bits, an operand of the exclusive-or `m = floor(b / 2)`, so both
//! tables have at most `2^b` entries:
//!
//! | lookup | input | table |
//! |---|---|---|
//! | low | `low` | range |
//! | high | `high` | range |
//! | xor | `active * (x, y, z)` | xor table |
//! | carried | `active * (x + y(previous row))` | range |
//!
//! Gates: `q * (word - low - 2^16 * high)` and `q * (sum(next) - sum - word * z)`. The sum in row 0 and in
//! the last row are public.

use super::dialect::{Assigned, Fr, assign_advice, associated_types, constrain_instance, gate, lookup};
use super::halo2::circuit::{Layouter, Value};
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Instance, Selector, TableColumn,
};
use super::halo2::poly::Rotation;
use super::rows::{Builtin, Values, usable_rows};

/// Columns of [`Lookups`].
#[derive(Clone, Debug)]
pub struct LookupsConfig {
    low: Column<Advice>,
    high: Column<Advice>,
    word: Column<Advice>,
    operands: [Column<Advice>; 3],
    sum: Column<Advice>,
    range: TableColumn,
    xor: [TableColumn; 3],
    q: Selector,
    active: Selector,
    instance: Column<Instance>,
}

/// Range checks and exclusive-or; see the module.
#[derive(Clone, Debug)]
pub struct Lookups {
    k: u32,
    values: Values,
    witnessed: bool,
}

/// The most bits in an entry of the range table; also the shift of `high`, whatever `k`, since `configure`
/// does not know it.
const RANGE_BITS_MAX: u32 = 16;

/// One row.
struct Row {
    low: u64,
    high: u64,
    word: u64,
    operands: [u64; 3],
    sum: Fr,
}

impl Lookups {
    fn range_bits(&self) -> u32 {
        (self.k - 1).min(RANGE_BITS_MAX)
    }

    /// Bits of an operand of the exclusive-or: both operands together index the table.
    fn operand_bits(&self) -> u32 {
        self.range_bits() / 2
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let values = self.values;
        let range_mask = (1u64 << self.range_bits()) - 1;
        let operand_mask = (1u64 << self.operand_bits()) - 1;
        let mut sum = values.field(0, 7);
        (0..usable_rows::<Self>(self.k)).map(move |row| {
            let low = values.bits(row, 0) & range_mask;
            let high = values.bits(row, 1) & range_mask;
            let word = low + (high << RANGE_BITS_MAX);
            let (x, y) = (
                values.bits(row, 2) & operand_mask,
                values.bits(row, 3) & operand_mask,
            );
            let z = x ^ y;
            let before = sum;
            sum += Fr::from(word) * Fr::from(z);
            Row {
                low,
                high,
                word,
                operands: [x, y, z],
                sum: before,
            }
        })
    }
}

impl Builtin for Lookups {
    const NAME: &'static str = "lookups";
    const K_MIN: u32 = 6;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        let mut rows = self.rows().map(|row| row.sum);
        let first = rows.next();
        vec![first.into_iter().chain(rows.last()).collect()]
    }
}

impl Circuit<Fr> for Lookups {
    type Config = LookupsConfig;
    associated_types!();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> LookupsConfig {
        let [low, high, word] = [(); 3].map(|_| cs.advice_column());
        let operands = [(); 3].map(|_| cs.advice_column());
        let sum = cs.advice_column();
        let range = cs.lookup_table_column();
        let xor = [(); 3].map(|_| cs.lookup_table_column());
        let q = cs.selector();
        let active = cs.complex_selector();
        let instance = cs.instance_column();
        cs.enable_equality(sum);
        cs.enable_equality(instance);

        lookup(cs, "low", |cells| {
            vec![(cells.query_advice(low, Rotation::cur()), range)]
        });
        lookup(cs, "high", |cells| {
            vec![(cells.query_advice(high, Rotation::cur()), range)]
        });
        lookup(cs, "xor", |cells| {
            let active = cells.query_selector(active);
            let inputs = operands.map(|column| active.clone() * cells.query_advice(column, Rotation::cur()));
            inputs.into_iter().zip(xor).collect()
        });
        lookup(cs, "carried", |cells| {
            let active = cells.query_selector(active);
            let x = cells.query_advice(operands[0], Rotation::cur());
            let y_before = cells.query_advice(operands[1], Rotation::prev());
            vec![(active * (x + y_before), range)]
        });

        gate(cs, "word and sum", |cells| {
            let q = cells.query_selector(q);
            let [low, high, word, z] =
                [low, high, word, operands[2]].map(|column| cells.query_advice(column, Rotation::cur()));
            let sum_now = cells.query_advice(sum, Rotation::cur());
            let sum_next = cells.query_advice(sum, Rotation::next());
            let shift = Expression::Constant(Fr::from(1 << RANGE_BITS_MAX));
            vec![
                q.clone() * (word.clone() - low - shift * high),
                q * (sum_next - sum_now - word * z),
            ]
        });
        LookupsConfig {
            low,
            high,
            word,
            operands,
            sum,
            range,
            xor,
            q,
            active,
            instance,
        }
    }

    fn synthesize(&self, config: LookupsConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        self.assign_tables(&config, &mut layouter)?;
        let last_row = usable_rows::<Self>(self.k) - 1;
        let ends = layouter.assign_region(
            || "words",
            |mut region| {
                let mut ends = None;
                for (row_index, row) in self.rows().enumerate() {
                    let witness = |value: Fr| {
                        if self.witnessed {
                            Value::known(Assigned::Trivial(value))
                        } else {
                            Value::unknown()
                        }
                    };
                    let [x, y, z] = row.operands;
                    let small = [config.low, config.high, config.word]
                        .into_iter()
                        .chain(config.operands);
                    for (column, value) in small.zip([row.low, row.high, row.word, x, y, z]) {
                        assign_advice(&mut region, column, row_index, witness(Fr::from(value)))?;
                    }
                    let sum = assign_advice(&mut region, config.sum, row_index, witness(row.sum))?;
                    if row_index != last_row {
                        config.q.enable(&mut region, row_index)?;
                    }
                    if row_index != 0 {
                        config.active.enable(&mut region, row_index)?;
                    }
                    ends = Some((ends.map_or(sum, |(first, _)| first), sum));
                }
                Ok(ends)
            },
        )?;
        if let Some((first, last)) = ends {
            constrain_instance(&mut layouter, first, config.instance, 0)?;
            constrain_instance(&mut layouter, last, config.instance, 1)?;
        }
        Ok(())
    }
}

impl Lookups {
    /// Both tables, `2^b` and `2^2m` entries; stock fills the rest of a table column with its first entry.
    fn assign_tables(&self, config: &LookupsConfig, layouter: &mut impl Layouter<Fr>) -> Result<(), Error> {
        layouter.assign_table(
            || "range",
            |mut table| {
                (0..1usize << self.range_bits()).try_for_each(|entry| {
                    table.assign_cell(
                        || "entry",
                        config.range,
                        entry,
                        || Value::known(Fr::from(entry as u64)),
                    )
                })
            },
        )?;
        layouter.assign_table(
            || "xor",
            |mut table| {
                let bits = self.operand_bits();
                for entry in 0..1usize << (2 * bits) {
                    let (x, y) = (entry as u64 >> bits, entry as u64 & ((1 << bits) - 1));
                    for (column, value) in config.xor.into_iter().zip([x, y, x ^ y]) {
                        table.assign_cell(|| "entry", column, entry, || Value::known(Fr::from(value)))?;
                    }
                }
                Ok(())
            },
        )
    }
}
