//! A circuit as a description: upstream's constraint system, before its selectors are replaced, in the types
//! of `spillproof-plonk`. Midnight's drop-in has this file, too.

use ff::PrimeField;
use spillproof_plonk::description::{Described, Element, FieldError, DEPTH_MAX};
use spillproof_plonk::{CircuitDescription, SavedError};

use super::circuit::{permuted, queries};
use super::names::Fr;
use crate::plonk::{ConstraintSystem, Expression};

/// Refuses a circuit whose witness depends on a transcript.
pub(super) fn has_one_phase(cs: &ConstraintSystem<Fr>) -> Result<(), SavedError> {
    let (phases, challenges) = (cs.phases().count(), cs.num_challenges());
    if phases == 1 && challenges == 0 {
        return Ok(());
    }
    Err(SavedError::Challenges { phases, challenges })
}

/// A field element's canonical bytes.
pub(super) fn element(value: &Fr) -> Element {
    value.to_repr()
}

/// The description of a circuit whose key has this hash.
///
/// # Errors
/// [`SavedError::Indescribable`], [`SavedError::Challenges`].
pub(super) fn of_system(cs: &ConstraintSystem<Fr>, key: Element) -> Result<CircuitDescription, SavedError> {
    let mut of = CircuitDescription {
        key,
        degree: cs.degree(),
        minimum_degree: cs.minimum_degree,
        fixed_columns: cs.num_fixed_columns(),
        advice_columns: cs.num_advice_columns(),
        instance_columns: cs.num_instance_columns(),
        // What no expression names is one or the other.
        simple_selectors: vec![false; cs.num_selectors()],
        fixed_queries: queries(&cs.fixed_queries),
        advice_queries: queries(&cs.advice_queries),
        instance_queries: queries(&cs.instance_queries),
        permuted: permuted(cs),
        constants: cs.constants.iter().map(|column| column.index()).collect(),
        ..CircuitDescription::default()
    };
    // A gate under an additive selector has none, but an argument of its own.
    for gate in cs.gates().iter().filter(|gate| !gate.polynomials().is_empty()) {
        let constraints = gate.polynomials().iter();
        let constraints =
            constraints.map(|constraint| described_expression(constraint, &mut of.simple_selectors, 0));
        of.gates.push(constraints.collect::<Result<_, _>>()?);
    }
    for lookup in cs.lookups() {
        let pairs = lookup.input_expressions().iter().zip(lookup.table_expressions());
        let pairs = pairs.map(|(input, table)| {
            let selectors = &mut of.simple_selectors;
            Ok((
                described_expression(input, selectors, 0)?,
                described_expression(table, selectors, 0)?,
            ))
        });
        of.lookups.push(pairs.collect::<Result<_, _>>()?);
    }
    Ok(of)
}

/// The expression, and of the selectors in it whether they are simple.
///
/// # Errors
/// As [`of_system`].
pub(super) fn described_expression(
    expression: &Expression<Fr>,
    simple_selectors: &mut [bool],
    depth: usize,
) -> Result<Described, SavedError> {
    let refused = |what, remedy| {
        SavedError::Indescribable(FieldError {
            what,
            offset: 0,
            value: format!("in depth {depth}"),
            remedy,
        })
    };
    if depth > DEPTH_MAX {
        return Err(refused(
            "an expression",
            "expressions of depth 1024 are described: write it as several constraints",
        ));
    }
    let query = |index: Option<usize>| {
        index.ok_or_else(|| refused("a cell that was not queried", "query cells within the gate"))
    };
    let mut inner = |of: &Expression<Fr>| described_expression(of, simple_selectors, depth + 1).map(Box::new);
    Ok(match expression {
        Expression::Constant(value) => Described::Constant(element(value)),
        Expression::Selector(selector) => {
            simple_selectors[selector.index()] = selector.is_simple();
            Described::Selector(selector.index())
        }
        Expression::Fixed(of) => Described::Fixed(query(of.index)?),
        Expression::Advice(of) => Described::Advice(query(of.index)?),
        Expression::Instance(of) => Described::Instance(query(of.index)?),
        Expression::Challenge(_) => {
            return Err(SavedError::Challenges {
                phases: 1,
                challenges: 1,
            })
        }
        Expression::Negated(a) => Described::Negated(inner(a)?),
        Expression::Sum(a, b) => Described::Sum(inner(a)?, inner(b)?),
        Expression::Product(a, b) => Described::Product(inner(a)?, inner(b)?),
        Expression::Scaled(a, factor) => Described::Scaled(inner(a)?, element(factor)),
    })
}
