//! The numerator of h over a proof's columns; [`constraints`](crate::spillproof::constraints) has the program and the order
//! of its sources. A child of `prover.rs`.

use super::*;
use crate::spillproof::constraints::{self, Places};

/// The columns of coefficients that the program reads, and the program. X and `l_0` have the two numbers that follow.
pub(super) fn numerator<C: CurveAffine>(
    pk: &ProvingKey<C>,
    circuits: &[Single<C::Scalar>],
    challenges: &Challenges<'_>,
) -> io::Result<(Vec<Column<Scalar>>, Program<Scalar>)> {
    let (cs, degree) = (&pk.vk.cs, pk.vk.cs_degree);
    let places = Places::new(cs, degree, circuits.len());
    let sources = sources(pk, circuits)?;
    assert_eq!(sources.len(), places.columns, "spillproof: columns of a numerator");
    Ok((sources, constraints::numerator(cs, degree, &places, challenges)))
}

fn sources<C: CurveAffine>(pk: &ProvingKey<C>, circuits: &[Single<C::Scalar>]) -> io::Result<Vec<Column<Scalar>>> {
    let mut all = columns(&pk.fixed_polys)?;
    all.extend(columns(&pk.permutation.polys)?);
    for Single { instance, advice, products, lookups } in circuits {
        all.extend(committed(advice)?);
        all.extend(columns(instance)?);
        all.extend(committed(products)?);
        for Lookup { input, table, product } in lookups {
            all.extend(committed([input, table, product])?);
        }
    }
    Ok(all)
}

fn committed<'p, F: Field>(polys: impl IntoIterator<Item = &'p Blinded<F>>) -> io::Result<Vec<Column<Scalar>>> {
    polys.into_iter().map(|Blinded { poly, .. }| column(poly)).collect()
}
