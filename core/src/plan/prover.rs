//! The steps of a proof, dry: the rounds of the drop-in's prover, with what each of them holds.

use super::keygen::Key;
use super::ledger::{Ledger, SCALAR_BYTES, Sheet};
use super::stages::Srs;
use super::{OpeningScheme, Phase, Shape};
use crate::Result;
use crate::column::{Placement, Residency};
use crate::plonkish::witness::TILE_CELLS;

/// A circuit's columns of values.
struct Values {
    instance: Vec<Sheet>,
    instance_polys: Vec<Sheet>,
    advice: Vec<Sheet>,
}

/// A lookup before its product.
struct Permuted {
    /// Input and table, if they were made for this.
    made: Vec<Sheet>,
    sides: [Sheet; 2],
    permuted: [Sheet; 2],
}

/// A circuit's polynomials.
struct Polynomials {
    instance: Vec<Sheet>,
    advice: Vec<Sheet>,
    products: Vec<Sheet>,
    /// Input, table, product.
    lookups: Vec<[Sheet; 3]>,
}

impl Ledger {
    pub fn proof(&mut self, shape: &Shape, srs: &Srs, key: &Key) -> Result<()> {
        self.begin(Phase::Proof);
        let mut values = self.instances(shape)?;
        for values in &mut values {
            self.witness(shape, srs, values)?;
        }
        let lookups = self.lookups(shape, srs, key, &values)?;
        self.step("permutation");
        let mut products = Vec::new();
        for values in &values {
            products.push(self.permutation(shape, srs, key, values)?);
        }
        self.step("lookup products");
        let mut permuted = Vec::new();
        for lookups in lookups {
            permuted.push(self.lookup_products(shape, srs, lookups)?);
        }
        self.step("random polynomial");
        let random = self.write_column(shape.rows(), Placement::Auto, [0, 0])?;
        self.commit(&srs.monomial, &random)?;

        self.step("advice polynomials");
        let mut circuits = Vec::new();
        for ((values, products), lookups) in values.into_iter().zip(products).zip(permuted) {
            let mut advice = Vec::new();
            for column in values.advice {
                advice.push(self.transform_from(column)?);
            }
            values.instance.into_iter().for_each(|column| self.free(column));
            circuits.push(Polynomials {
                instance: values.instance_polys,
                advice,
                products,
                lookups,
            });
        }

        self.step("quotient");
        let mut sources = key.fixed_polys.clone();
        sources.extend(&key.sigma_polys);
        for circuit in &circuits {
            sources.extend(circuit.all());
        }
        let pieces = self.quotient(shape, &sources)?;
        self.step("commit quotient");
        self.commit_all(&srs.monomial, &pieces)?;
        self.step("evaluations");
        let h = self.linear_combination(&pieces)?;
        pieces.into_iter().for_each(|piece| self.free(piece));
        self.openings(shape, srs, key, &circuits, &[Some(random), h])
    }

    fn instances(&mut self, shape: &Shape) -> Result<Vec<Values>> {
        self.step("instances");
        (0..shape.circuits)
            .map(|_| {
                let mut instance = Vec::new();
                for _ in 0..shape.instances {
                    instance.push(self.write_column(shape.rows(), Placement::Auto, [0, 0])?);
                }
                let instance_polys = instance
                    .iter()
                    .map(|column| self.transform(column))
                    .collect::<Result<_>>()?;
                Ok(Values {
                    instance,
                    instance_polys,
                    advice: Vec::new(),
                })
            })
            .collect()
    }

    /// Synthesis and commitments, phase by phase.
    fn witness(&mut self, shape: &Shape, srs: &Srs, values: &mut Values) -> Result<()> {
        self.step("synthesize");
        let (rows, advice) = (shape.rows(), shape.advice());
        let before = self.held_bytes();
        let cells = rows * shape.advice_cell_bytes;
        let reading_bytes = Residency::share_bytes_within(self.available_bytes(), advice);
        let share_bytes = match shape.phases.len() {
            1 => Residency::writing_share_within(self.available_bytes(), advice),
            _ => reading_bytes,
        };
        let kept_bytes = Residency::kept_bytes(share_bytes, advice, reading_bytes);
        let cells_each = std::iter::repeat_n(cells, advice);
        let traffic = self.maps((share_bytes, kept_bytes), advice, cells_each)?;
        self.disk(cells * advice as u64);
        self.moved(0, traffic.written);
        self.release(share_bytes - kept_bytes);
        let maps = self.held_bytes() - before;
        let mut made = vec![None; advice];
        for phase in &shape.phases {
            self.step("commit advice");
            self.moved(traffic.read * phase.len() as u64 / advice.max(1) as u64, 0);
            let mut columns = Vec::new();
            for &column in phase {
                let tile = (TILE_CELLS as u64).min(rows) * SCALAR_BYTES;
                let sheet = self.write_column(rows, Placement::Auto, [tile, 0])?;
                made[column] = Some(sheet);
                columns.push(sheet);
            }
            self.commit_all(&srs.lagrange, &columns)?;
        }
        self.release(maps);
        self.undisk(cells * advice as u64);
        values.advice = made.into_iter().flatten().collect();
        Ok(())
    }

    fn lookups(
        &mut self,
        shape: &Shape,
        srs: &Srs,
        key: &Key,
        values: &[Values],
    ) -> Result<Vec<Vec<Permuted>>> {
        self.step("lookups");
        let usable = shape.rows() - shape.blinding_factors - 1;
        let mut all = Vec::new();
        for values in values {
            let columns = values.all(key);
            let mut lookups = Vec::new();
            for lookup in &shape.lookups {
                let made = self.evaluate_rows(lookup, &columns, shape.rows())?;
                let mut computed = made.iter().copied();
                let [input, table] = lookup.plain.map(|plain| match plain {
                    Some(column) => columns.get(column).copied(),
                    None => computed.next(),
                });
                let (Some(input), Some(table)) = (input, table) else {
                    continue;
                };
                let permuted = self.permute(&input, &table, usable)?;
                self.commit_all(&srs.lagrange, &permuted)?;
                lookups.push(Permuted {
                    made,
                    sides: [input, table],
                    permuted,
                });
            }
            all.push(lookups);
        }
        Ok(all)
    }

    fn permutation(&mut self, shape: &Shape, srs: &Srs, key: &Key, values: &Values) -> Result<Vec<Sheet>> {
        let columns = values.all(key);
        let mut products = Vec::new();
        for (set, sigmas) in shape
            .permuted
            .chunks(shape.set_len)
            .zip(key.sigma_values.chunks(shape.set_len))
        {
            let mut read: Vec<Sheet> = set
                .iter()
                .filter_map(|column| columns.get(*column).copied())
                .collect();
            read.extend(sigmas);
            let product = self.product(&read, shape.rows(), shape.blinding_factors, 3)?;
            products.push(self.commit_values(srs, product)?);
        }
        Ok(products)
    }

    fn lookup_products(
        &mut self,
        shape: &Shape,
        srs: &Srs,
        lookups: Vec<Permuted>,
    ) -> Result<Vec<[Sheet; 3]>> {
        let mut polys = Vec::new();
        for Permuted {
            made,
            sides,
            permuted: [input, table],
        } in lookups
        {
            let read = [sides[0], sides[1], input, table];
            let product = self.product(&read, shape.rows(), shape.blinding_factors, 2)?;
            made.into_iter().for_each(|column| self.free(column));
            let product = self.commit_values(srs, product)?;
            polys.push([self.transform_from(input)?, self.transform_from(table)?, product]);
        }
        Ok(polys)
    }

    /// A commitment to values, which then become coefficients.
    fn commit_values(&mut self, srs: &Srs, values: Sheet) -> Result<Sheet> {
        self.commit(&srs.lagrange, &values)?;
        self.transform_from(values)
    }

    /// Evaluations, and the opening of everything.
    fn openings(
        &mut self,
        shape: &Shape,
        srs: &Srs,
        key: &Key,
        circuits: &[Polynomials],
        others: &[Option<Sheet>],
    ) -> Result<()> {
        let (fixed, advice) = shape.openings.columns.split_at(shape.all_fixed());
        let last = -(shape.blinding_factors as i32 + 1);
        let mut opened: Vec<(Sheet, Vec<i32>)> = Vec::new();
        let columns = |polys: &[Sheet], points: &[Vec<i32>]| -> Vec<(Sheet, Vec<i32>)> {
            polys
                .iter()
                .copied()
                .zip(points.iter().cloned())
                .filter(|(_, points)| !points.is_empty())
                .collect()
        };
        for circuit in circuits {
            opened.extend(columns(&circuit.advice, advice));
            let sets = circuit.products.len();
            for (set, product) in circuit.products.iter().enumerate() {
                let chained = (set + 1 < sets).then_some(last);
                opened.push((*product, [0, 1].into_iter().chain(chained).collect()));
            }
            for [input, table, product] in &circuit.lookups {
                opened.extend([(*product, vec![0, 1]), (*input, vec![0, -1]), (*table, vec![0])]);
            }
        }
        opened.extend(columns(&key.fixed_polys, fixed));
        opened.extend(key.sigma_polys.iter().map(|poly| (*poly, vec![0])));
        opened.extend(others.iter().flatten().map(|poly| (*poly, vec![0])));
        let evaluated: Vec<(Sheet, usize)> = opened
            .iter()
            .map(|(poly, points)| (*poly, points.len()))
            .collect();
        self.evaluate(&evaluated)?;

        self.step("opening");
        let mut sets: Vec<Vec<i32>> = opened.iter().map(|(_, points)| points.clone()).collect();
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets.sort_unstable();
        sets.dedup();
        match shape.openings.scheme {
            OpeningScheme::Shplonk => {
                let mut polys: Vec<Sheet> = opened.iter().map(|(poly, _)| *poly).collect();
                let h = self.open(&srs.monomial, &polys, sets.len() as u64, true)?;
                polys.extend(h);
                self.open(&srs.monomial, &polys, 1, false)?;
            }
            OpeningScheme::Gwc => {
                let mut points = sets.concat();
                points.sort_unstable();
                points.dedup();
                for point in points {
                    let here = opened.iter().filter(|(_, points)| points.contains(&point));
                    let polys: Vec<Sheet> = here.map(|(poly, _)| *poly).collect();
                    self.open(&srs.monomial, &polys, 1, false)?;
                }
            }
        }
        Ok(())
    }
}

impl Values {
    /// All columns of values by number.
    fn all(&self, key: &Key) -> Vec<Sheet> {
        let columns = key.fixed_values.iter().chain(&self.advice).chain(&self.instance);
        columns.copied().collect()
    }
}

impl Polynomials {
    fn all(&self) -> impl Iterator<Item = &Sheet> {
        let committed = self.instance.iter().chain(&self.advice).chain(&self.products);
        committed.chain(self.lookups.iter().flatten())
    }
}
