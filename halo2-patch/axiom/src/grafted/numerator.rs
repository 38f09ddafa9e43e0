//! The numerator of h as one program, in the order of stock's `evaluate_h`: for each circuit its gates, its permutation and
//! its lookups, all folded by Horner's rule in `y`, the first constraint on top. A child of `prover.rs`.
//!
//! Sources, by number: fixed columns, sigmas, then for each circuit its advice, its instances, its products, and for each
//! lookup the permuted input, the permuted table and the product; then X itself, and `l_0`. The other indicators are `l_0`,
//! rotated: row `n - t` is where the first row is `t` rows on.

use ::spillproof::plonkish::arguments::{
    lookup, permutation, Lookup as LookupColumns, PermutationFactors, PermutationSet, RowSelectors,
};

use super::*;

/// The columns of coefficients that the program reads, and the program. X and `l_0` have the two numbers that follow.
pub(super) fn numerator<C: CurveAffine>(
    pk: &ProvingKey<C>,
    circuits: &[Single<C::Scalar>],
    challenges: &Challenges<'_>,
) -> io::Result<(Vec<Column<Scalar>>, Program<Scalar>)> {
    let sources = Sources::new(pk, circuits)?;
    let cs = &pk.vk.cs;
    let Challenges { theta, beta, gamma, y, .. } = *challenges;
    let delta = scalar(&<C::Scalar as PrimeField>::DELTA);
    let factors = PermutationFactors { beta, gamma, delta };
    let set_len = pk.vk.cs_degree - 2;

    let mut builder = Builder::new();
    let identity = builder.query(sources.columns.len(), 0);
    let rows = RowSelectors::computed(&mut builder, sources.columns.len() + 1, cs.blinding_factors() as u32);
    let mut constraints = Vec::new();
    for at in &sources.circuits {
        let lowering =
            Lowering { fixed: 0, advice: at.advice, instance: at.instance, challenges: challenges.challenges };
        let gates = cs.gates.iter().flat_map(|gate| gate.polynomials());
        constraints.extend(gates.map(|gate| lowering.value(&mut builder, gate)));

        let mut sigmas = sources.sigmas..;
        let sets: Vec<PermutationSet> = (cs.permutation.columns.chunks(set_len).enumerate())
            .map(|(set, columns)| PermutationSet {
                product: at.products + set,
                values: columns.iter().map(|column| builder.query(lowering.column(column), 0)).collect(),
                sigmas: columns.iter().zip(&mut sigmas).map(|(_, sigma)| builder.query(sigma, 0)).collect(),
            })
            .collect();
        constraints.extend(permutation(&mut builder, &rows, &sets, identity, &factors));

        for (argument, first) in cs.lookups.iter().zip((at.lookups..).step_by(3)) {
            let columns = LookupColumns {
                permuted_input: first,
                permuted_table: first + 1,
                product: first + 2,
                input: lowering.compressed(&mut builder, &argument.input_expressions, theta),
                table: lowering.compressed(&mut builder, &argument.table_expressions, theta),
            };
            constraints.extend(lookup(&mut builder, &rows, &columns, beta, gamma));
        }
    }
    let folded = builder.fold(&constraints, y);
    Ok((sources.columns, builder.finish(&[folded])))
}

/// Numbers of the columns.
struct Sources {
    columns: Vec<Column<Scalar>>,
    sigmas: usize,
    circuits: Vec<CircuitSources>,
}

/// Where each kind of a circuit's columns begins.
struct CircuitSources {
    advice: usize,
    instance: usize,
    products: usize,
    /// Three for each lookup.
    lookups: usize,
}

impl Sources {
    fn new<C: CurveAffine>(pk: &ProvingKey<C>, circuits: &[Single<C::Scalar>]) -> io::Result<Self> {
        let mut all = columns(&pk.fixed_polys)?;
        let sigmas = all.len();
        all.extend(columns(&pk.permutation.polys)?);
        let mut places = Vec::with_capacity(circuits.len());
        for Single { instance, advice, products, lookups } in circuits {
            let at_advice = all.len();
            all.extend(committed(advice)?);
            let at_instance = all.len();
            all.extend(columns(instance)?);
            let at_products = all.len();
            all.extend(committed(products)?);
            let at_lookups = all.len();
            for Lookup { input, table, product } in lookups {
                all.extend(committed([input, table, product])?);
            }
            places.push(CircuitSources {
                advice: at_advice,
                instance: at_instance,
                products: at_products,
                lookups: at_lookups,
            });
        }
        Ok(Self { columns: all, sigmas, circuits: places })
    }
}

fn committed<'p, F: Field>(polys: impl IntoIterator<Item = &'p Blinded<F>>) -> io::Result<Vec<Column<Scalar>>> {
    polys.into_iter().map(|Blinded { poly, .. }| column(poly)).collect()
}
