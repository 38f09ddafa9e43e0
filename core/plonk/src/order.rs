//! Which polynomial is opened where, in halo2's two orders: that of the evaluations in the transcript, and
//! that of the queries to the multi-opening.

use std::collections::HashMap;

use spillproof_engine::column::Column;
use spillproof_engine::stream::evaluate_all;
use spillproof_kernels::field::KernelField;

use crate::circuit::{ConstraintSystem, Query as Cell};
use crate::domain::Domain;
use crate::error::Result;
use crate::openings::{Opening, Query};
use crate::outside::Blinded;
use crate::protocol::{Instances, Part, Protocol};

/// A lookup's polynomials.
pub(crate) struct Lookup<F> {
    pub input: Blinded<F>,
    pub table: Blinded<F>,
    pub product: Blinded<F>,
}

/// A circuit's polynomials, after the last product.
pub(crate) struct Polynomials<F> {
    pub instance: Vec<Blinded<F>>,
    pub advice: Vec<Blinded<F>>,
    pub products: Vec<Blinded<F>>,
    pub lookups: Vec<Lookup<F>>,
    pub trash: Vec<Blinded<F>>,
}

/// A polynomial, and a point.
pub(crate) type At<'p, F> = (&'p Blinded<F>, F);

/// The points of a proof, relative to `x`.
pub(crate) struct Order<'a, F> {
    cs: &'a ConstraintSystem<F>,
    domain: &'a Domain<F>,
    x: F,
    next: F,
    previous: F,
    /// Where the last usable row is, seen from the first.
    last: F,
    instances: Instances,
    queries: &'static [Part],
}

impl<'a, F: KernelField> Order<'a, F> {
    pub fn new(cs: &'a ConstraintSystem<F>, domain: &'a Domain<F>, x: F, protocol: &Protocol) -> Self {
        let last = -(cs.unusable_rows() as i32);
        let [next, previous, last] = [1, -1, last].map(|rotation| domain.rotate(x, rotation));
        Self {
            cs,
            domain,
            x,
            next,
            previous,
            last,
            instances: protocol.instances,
            queries: protocol.queries,
        }
    }

    /// Queried columns of one kind.
    pub fn cells<'q, 'p>(
        &self,
        queries: impl IntoIterator<Item = &'q Cell>,
        polynomials: &'p [Blinded<F>],
    ) -> Vec<At<'p, F>> {
        let at = |(column, rotation): &Cell| (&polynomials[*column], self.domain.rotate(self.x, *rotation));
        queries.into_iter().map(at).collect()
    }

    /// Every evaluation that goes into the transcript, but for fixed columns, sigmas and the random
    /// polynomial, which come between the two parts that this returns.
    pub fn evaluations<'p>(&self, circuits: &'p [Polynomials<F>]) -> [Vec<At<'p, F>>; 2] {
        let instances = circuits.iter().flat_map(|circuit| self.instances(circuit));
        let advice = circuits.iter().flat_map(|circuit| self.advice(circuit));
        let products = circuits.iter().flat_map(|circuit| self.products(circuit));
        let lookups = circuits.iter().flat_map(|circuit| self.lookups(circuit));
        let trash = circuits.iter().flat_map(|circuit| self.trash(circuit));
        [
            instances.chain(advice).collect(),
            products.chain(lookups).chain(trash).collect(),
        ]
    }

    /// The queries of a circuit.
    pub fn queries<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        let of_part = |part: &Part| match part {
            Part::Instances => self.instances(circuit),
            Part::Advice => self.advice(circuit),
            Part::Products => {
                let products = &circuit.products;
                let in_row = products
                    .iter()
                    .flat_map(|product| [(product, self.x), (product, self.next)]);
                let chained = products.iter().rev().skip(1).map(|product| (product, self.last));
                in_row.chain(chained).collect()
            }
            Part::Lookups => {
                let lookups = circuit.lookups.iter().flat_map(|lookup| {
                    [
                        (&lookup.product, self.x),
                        (&lookup.input, self.x),
                        (&lookup.table, self.x),
                        (&lookup.input, self.previous),
                        (&lookup.product, self.next),
                    ]
                });
                lookups.collect()
            }
            Part::Trash => self.trash(circuit),
        };
        self.queries.iter().flat_map(of_part).collect()
    }

    /// The instance columns that are opened.
    fn instances<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        let queries = self.cs.instance_queries.iter();
        let opened = queries.filter(|(column, _)| self.instances.are_committed(*column));
        self.cells(opened, &circuit.instance)
    }

    fn advice<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        self.cells(&self.cs.advice_queries, &circuit.advice)
    }

    fn trash<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        circuit.trash.iter().map(|trash| (trash, self.x)).collect()
    }

    /// Every product in its row and the next; all but the last one also where the next one begins.
    fn products<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        let products = &circuit.products;
        let openings = products.iter().enumerate().flat_map(|(set, product)| {
            let chained = (set + 1 < products.len()).then_some((product, self.last));
            [(product, self.x), (product, self.next)]
                .into_iter()
                .chain(chained)
        });
        openings.collect()
    }

    fn lookups<'p>(&self, circuit: &'p Polynomials<F>) -> Vec<At<'p, F>> {
        let openings = circuit.lookups.iter().flat_map(
            |Lookup {
                 input,
                 table,
                 product,
             }| {
                [
                    (product, self.x),
                    (product, self.next),
                    (input, self.x),
                    (input, self.previous),
                    (table, self.x),
                ]
            },
        );
        openings.collect()
    }
}

/// Polynomials with their values at points.
pub(crate) struct Evaluations<'p, F> {
    polynomials: Vec<&'p Blinded<F>>,
    /// Where each of them is, by its address.
    places: HashMap<usize, usize>,
    points: Vec<Vec<F>>,
    values: Vec<Vec<F>>,
}

impl<'p, F: KernelField> Evaluations<'p, F> {
    /// Reads every polynomial once.
    pub fn of(wanted: &[At<'p, F>]) -> Result<Self> {
        let (mut polynomials, mut points): (Vec<&Blinded<F>>, Vec<Vec<F>>) = (Vec::new(), Vec::new());
        let mut places = HashMap::with_capacity(wanted.len());
        for &(polynomial, point) in wanted {
            let place = *places
                .entry(std::ptr::from_ref(polynomial).addr())
                .or_insert(polynomials.len());
            if place == polynomials.len() {
                polynomials.push(polynomial);
                points.push(Vec::new());
            }
            points[place].push(point);
        }
        let queries: Vec<(&Column<F>, Vec<F>)> = polynomials
            .iter()
            .map(|poly| &poly.column)
            .zip(points.iter().cloned())
            .collect();
        let values = evaluate_all(&queries)?;
        Ok(Self {
            polynomials,
            places,
            points,
            values,
        })
    }

    /// A value that was asked for.
    ///
    /// Panics for another one.
    pub fn value(&self, (polynomial, point): At<'_, F>) -> F {
        self.value_of(self.place(polynomial), point)
    }

    fn place(&self, polynomial: &Blinded<F>) -> usize {
        match self.places.get(&std::ptr::from_ref(polynomial).addr()) {
            Some(place) => *place,
            None => panic!("a polynomial that was not evaluated"),
        }
    }

    fn value_of(&self, place: usize, point: F) -> F {
        match self.points[place].iter().position(|other| *other == point) {
            Some(at) => self.values[place][at],
            None => panic!("a polynomial that was not evaluated at this point"),
        }
    }

    /// These queries, all of which were evaluated.
    ///
    /// Panics for others.
    pub fn opening<'q>(&self, queries: impl Iterator<Item = At<'q, F>>) -> Opening<'p, F> {
        let query = |(polynomial, point): At<'_, F>| {
            let polynomial_at = self.place(polynomial);
            Query {
                polynomial: polynomial_at,
                point,
                evaluation: self.value_of(polynomial_at, point),
                blind: polynomial.blind,
            }
        };
        Opening {
            polynomials: self
                .polynomials
                .iter()
                .map(|poly| vec![(F::ONE, &poly.column)])
                .collect(),
            queries: queries.map(query).collect(),
        }
    }
}
