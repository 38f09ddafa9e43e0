//! Which polynomial is opened where, in stock's two orders: that of the evaluations in the transcript, and that of the
//! queries to the multi-opening. A child of `prover.rs`.

use super::*;

/// The points of a proof, relative to `x`.
pub(super) struct Openings<'a, C: CurveAffine> {
    vk: &'a VerifyingKey<C>,
    x: C::Scalar,
    next: C::Scalar,
    previous: C::Scalar,
    /// Where the last usable row is, seen from the first.
    last: C::Scalar,
    query_instance: bool,
}

/// A polynomial, and where.
pub(super) type Opening<'a, F> = (&'a Polynomial<F, Coeff>, F);

impl<'a, C: CurveAffine> Openings<'a, C>
where
    C::Scalar: WithSmallOrderMulGroup<3>,
{
    pub(super) fn new(vk: &'a VerifyingKey<C>, x: C::Scalar, query_instance: bool) -> Self {
        let last = -(vk.cs.blinding_factors() as i32 + 1);
        let [next, previous, last] = [1, -1, last].map(|at| vk.domain.rotate_omega(x, Rotation(at)));
        Self { vk, x, next, previous, last, query_instance }
    }

    /// The fixed columns, as queried.
    pub(super) fn fixed<'p>(&self, polys: &'p [Polynomial<C::Scalar, Coeff>]) -> Vec<Opening<'p, C::Scalar>> {
        let queries = self.vk.cs.fixed_queries.iter();
        queries.map(|(column, at)| (&polys[column.index()], self.vk.domain.rotate_omega(self.x, *at))).collect()
    }

    /// Every evaluation that goes into the transcript, but for fixed columns, sigmas and the random polynomial, which come
    /// between the two parts that this returns.
    pub(super) fn evaluations<'p>(&self, circuits: &'p [Single<C::Scalar>]) -> [Vec<Opening<'p, C::Scalar>>; 2] {
        let instances = circuits.iter().flat_map(|circuit| self.instances(circuit));
        let advice = circuits.iter().flat_map(|circuit| self.advice(circuit));
        let advice = advice.map(|(committed, point)| (&committed.poly, point));
        let products = circuits.iter().flat_map(|circuit| self.products(circuit));
        let lookups = circuits.iter().flat_map(|circuit| self.lookups(circuit));
        [instances.chain(advice).collect(), products.chain(lookups).collect()]
    }

    /// The queries of a circuit.
    pub(super) fn queries<'p>(&self, circuit: &'p Single<C::Scalar>) -> Vec<ProverQuery<'p, C>> {
        let blinded = |(Blinded { poly, blind }, point): (&'p Blinded<C::Scalar>, C::Scalar)| ProverQuery {
            point,
            poly,
            blind: *blind,
        };
        let products = &circuit.products;
        let in_row = products.iter().flat_map(|product| [(product, self.x), (product, self.next)]);
        let chained = products.iter().rev().skip(1).map(|product| (product, self.last));
        let lookups = circuit.lookups.iter().flat_map(|lookup| {
            [
                (&lookup.product, self.x),
                (&lookup.input, self.x),
                (&lookup.table, self.x),
                (&lookup.input, self.previous),
                (&lookup.product, self.next),
            ]
        });
        let committed = self.advice(circuit).into_iter().chain(in_row).chain(chained).chain(lookups);
        unblinded(self.instances(circuit)).chain(committed.map(blinded)).collect()
    }

    fn instances<'p>(&self, circuit: &'p Single<C::Scalar>) -> Vec<Opening<'p, C::Scalar>> {
        let queries = self.vk.cs.instance_queries.iter().filter(|_| self.query_instance);
        let opening = |(column, at): &(circuit::Column<_>, Rotation)| {
            (&circuit.instance[column.index()], self.vk.domain.rotate_omega(self.x, *at))
        };
        queries.map(opening).collect()
    }

    fn advice<'p>(&self, circuit: &'p Single<C::Scalar>) -> Vec<(&'p Blinded<C::Scalar>, C::Scalar)> {
        let queries = self.vk.cs.advice_queries.iter();
        queries
            .map(|(column, at)| (&circuit.advice[column.index()], self.vk.domain.rotate_omega(self.x, *at)))
            .collect()
    }

    /// Every product in its row and the next; all but the last one also where the next one begins.
    fn products<'p>(&self, circuit: &'p Single<C::Scalar>) -> Vec<Opening<'p, C::Scalar>> {
        let products = &circuit.products;
        let openings = products.iter().enumerate().flat_map(|(set, Blinded { poly, .. })| {
            let chained = (set + 1 < products.len()).then_some((poly, self.last));
            [(poly, self.x), (poly, self.next)].into_iter().chain(chained)
        });
        openings.collect()
    }

    fn lookups<'p>(&self, circuit: &'p Single<C::Scalar>) -> Vec<Opening<'p, C::Scalar>> {
        let openings = circuit.lookups.iter().flat_map(|Lookup { input, table, product }| {
            [
                (&product.poly, self.x),
                (&product.poly, self.next),
                (&input.poly, self.x),
                (&input.poly, self.previous),
                (&table.poly, self.x),
            ]
        });
        openings.collect()
    }
}

/// Queries of polynomials that are committed to without a blind.
pub(super) fn unblinded<'p, C: CurveAffine>(
    openings: impl IntoIterator<Item = Opening<'p, C::Scalar>>,
) -> impl Iterator<Item = ProverQuery<'p, C>> {
    openings.into_iter().map(|(poly, point)| ProverQuery { point, poly, blind: Blind::default() })
}
