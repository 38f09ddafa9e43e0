//! Many columns for few rows, as the circuits of virtual machines have them: 262 advice columns, and 158 lookups in one table.
//!
//! Columns: advice `low_i high_i word_i` for 79 words and `s_0 .. s_24`; fixed: a range table and a selector (2 in all); one
//! instance; the sums and the instance are permuted. A range entry has `min(k - 1, 16)` bits.
//!
//! | what | expression | how many |
//! |---|---|---|
//! | lookup | `low_i` and `high_i` in the range table | 158 |
//! | gate | `q * (word_i - low_i - 2^16 * high_i)` | 79 |
//! | gate | `q * (s_j(next) - s_j - word_3j * word_(3j+1) * word_(3j+2))` | 25 |
//! | copy | `s_(j+1)` of row 0 is `s_j` of the last row | 24 |
//!
//! The first and the last sum are public.

use super::dialect::{
    Assigned, Field, Fr, assign_advice, associated_types, constrain_equal, constrain_instance, gate, lookup,
};
use super::halo2::circuit::{Layouter, Value};
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Instance, Selector, TableColumn,
};
use super::halo2::poly::Rotation;
use super::rows::{Builtin, Values, usable_rows};

/// Words of a row.
const WORDS: usize = 79;
/// Sums of a row: each of the products of three words.
const SUMS: usize = 25;
/// The most bits in an entry of the range table; also the shift of `high`, whatever `k`, since `configure` does not know it.
const RANGE_BITS_MAX: u32 = 16;

/// Columns of [`Machine`].
#[derive(Clone, Debug)]
pub struct MachineConfig {
    words: Vec<Word>,
    sums: Vec<Column<Advice>>,
    range: TableColumn,
    q: Selector,
    instance: Column<Instance>,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    low: Column<Advice>,
    high: Column<Advice>,
    word: Column<Advice>,
}

/// Many words in each row; see the module.
#[derive(Clone, Debug)]
pub struct Machine {
    k: u32,
    values: Values,
    witnessed: bool,
}

impl Machine {
    fn range_bits(&self) -> u32 {
        (self.k - 1).min(RANGE_BITS_MAX)
    }

    /// The halves of a row's words.
    fn halves(&self, row: usize) -> [[u64; 2]; WORDS] {
        let mask = (1 << self.range_bits()) - 1;
        std::array::from_fn(|word| [0, 1].map(|half| self.values.bits(row, 2 * word as u64 + half) & mask))
    }

    /// What a row adds to each sum.
    fn products(halves: &[[u64; 2]; WORDS]) -> [Fr; SUMS] {
        std::array::from_fn(|sum| {
            let factors = halves[3 * sum..3 * sum + 3].iter();
            factors.fold(Fr::ONE, |product, halves| product * Fr::from(word_of(*halves)))
        })
    }

    /// The sums of row 0: each begins where the one before it ends.
    fn first_sums(&self) -> [Fr; SUMS] {
        let mut totals = [Fr::ZERO; SUMS];
        for row in 0..usable_rows::<Self>(self.k) - 1 {
            let products = Self::products(&self.halves(row));
            totals
                .iter_mut()
                .zip(products)
                .for_each(|(total, product)| *total += product);
        }
        let mut first = self.values.field(0, u64::MAX >> 8);
        totals.map(|total| {
            let next = first + total;
            std::mem::replace(&mut first, next)
        })
    }

    /// Halves and sums of each row.
    fn rows(&self) -> impl Iterator<Item = ([[u64; 2]; WORDS], [Fr; SUMS])> + '_ {
        let mut sums = self.first_sums();
        (0..usable_rows::<Self>(self.k)).map(move |row| {
            let (halves, now) = (self.halves(row), sums);
            let products = Self::products(&halves);
            sums.iter_mut()
                .zip(products)
                .for_each(|(sum, product)| *sum += product);
            (halves, now)
        })
    }
}

fn word_of([low, high]: [u64; 2]) -> u64 {
    low + (high << RANGE_BITS_MAX)
}

impl Builtin for Machine {
    const NAME: &'static str = "machine";
    const K_MIN: u32 = 6;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        let mut rows = self.rows();
        let first = rows.next().map(|(_, sums)| sums[0]);
        let last = rows.last().map(|(_, sums)| sums[SUMS - 1]);
        vec![first.into_iter().chain(last).collect()]
    }
}

impl Circuit<Fr> for Machine {
    type Config = MachineConfig;
    associated_types!();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> MachineConfig {
        let mut word = || {
            let [low, high, word] = [(); 3].map(|()| cs.advice_column());
            Word { low, high, word }
        };
        let words: Vec<Word> = (0..WORDS).map(|_| word()).collect();
        let sums: Vec<_> = (0..SUMS).map(|_| cs.advice_column()).collect();
        let range = cs.lookup_table_column();
        let q = cs.selector();
        let instance = cs.instance_column();
        sums.iter().for_each(|sum| cs.enable_equality(*sum));
        cs.enable_equality(instance);

        for Word { low, high, .. } in &words {
            for half in [*low, *high] {
                lookup(cs, "half", |cells| {
                    vec![(cells.query_advice(half, Rotation::cur()), range)]
                });
            }
        }
        gate(cs, "words", |cells| {
            let q = cells.query_selector(q);
            let shift = Expression::Constant(Fr::from(1 << RANGE_BITS_MAX));
            let of_word = |Word { low, high, word }: &Word| {
                let [low, high, word] =
                    [low, high, word].map(|column| cells.query_advice(*column, Rotation::cur()));
                q.clone() * (word - low - shift.clone() * high)
            };
            words.iter().map(of_word).collect()
        });
        gate(cs, "sums", |cells| {
            let q = cells.query_selector(q);
            let of_sum = |(factors, sum): (&[Word], &Column<Advice>)| {
                let mut word = |at: usize| cells.query_advice(factors[at].word, Rotation::cur());
                let product = word(0) * word(1) * word(2);
                let [now, next] =
                    [Rotation::cur(), Rotation::next()].map(|row| cells.query_advice(*sum, row));
                q.clone() * (next - now - product)
            };
            words.chunks_exact(3).zip(&sums).map(of_sum).collect()
        });
        MachineConfig {
            words,
            sums,
            range,
            q,
            instance,
        }
    }

    fn synthesize(&self, config: MachineConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        layouter.assign_table(
            || "range",
            |mut table| {
                (0..1usize << self.range_bits()).try_for_each(|entry| {
                    let value = || Value::known(Fr::from(entry as u64));
                    table.assign_cell(|| "entry", config.range, entry, value)
                })
            },
        )?;
        let last_row = usable_rows::<Self>(self.k) - 1;
        let ends = layouter.assign_region(
            || "rows",
            |mut region| {
                let witness = |value: Fr| match self.witnessed {
                    true => Value::known(Assigned::Trivial(value)),
                    false => Value::unknown(),
                };
                let (mut first, mut last) = (Vec::new(), Vec::new());
                for (row, (halves, sums)) in self.rows().enumerate() {
                    for (Word { low, high, word }, halves) in config.words.iter().zip(halves) {
                        let values = [halves[0], halves[1], word_of(halves)];
                        for (column, value) in [low, high, word].into_iter().zip(values) {
                            assign_advice(&mut region, *column, row, witness(Fr::from(value)))?;
                        }
                    }
                    for (column, sum) in config.sums.iter().zip(sums) {
                        let cell = assign_advice(&mut region, *column, row, witness(sum))?;
                        if row == 0 {
                            first.push(cell);
                        }
                        if row == last_row {
                            last.push(cell);
                        }
                    }
                    if row != last_row {
                        config.q.enable(&mut region, row)?;
                    }
                }
                for (begin, end) in first.iter().skip(1).zip(&last) {
                    constrain_equal(&mut region, *begin, *end)?;
                }
                Ok(first.first().copied().zip(last.last().copied()))
            },
        )?;
        if let Some((first, last)) = ends {
            constrain_instance(&mut layouter, first, config.instance, 0)?;
            constrain_instance(&mut layouter, last, config.instance, 1)?;
        }
        Ok(())
    }
}
