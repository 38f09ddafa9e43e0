//! A synthesis that keeps nothing: what it takes is the circuit's own.

use halo2_base::halo2_proofs::arithmetic::Field;
use halo2_base::halo2_proofs::circuit::Value;
use halo2_base::halo2_proofs::plonk::{
    Advice, Any, Assigned, Assignment, Challenge, Circuit, Column, ConstraintSystem, Error, Fixed,
    FloorPlanner, Instance, Selector,
};

/// Runs the circuit's synthesis as keygen does.
pub fn synthesize<F: Field, C: Circuit<F>>(circuit: &C) -> Result<(), Error> {
    let mut cs = ConstraintSystem::default();
    let config = C::configure_with_params(&mut cs, circuit.params());
    let constants = cs.constants().clone();
    C::FloorPlanner::synthesize(&mut Nothing, circuit, config, constants)
}

struct Nothing;

impl<F: Field> Assignment<F> for Nothing {
    fn enter_region<NR: Into<String>, N: FnOnce() -> NR>(&mut self, _: N) {}
    fn annotate_column<A: FnOnce() -> AR, AR: Into<String>>(&mut self, _: A, _: Column<Any>) {}
    fn exit_region(&mut self) {}
    fn enable_selector<A: FnOnce() -> AR, AR: Into<String>>(
        &mut self,
        _: A,
        _: &Selector,
        _: usize,
    ) -> Result<(), Error> {
        Ok(())
    }
    fn query_instance(&self, _: Column<Instance>, _: usize) -> Result<Value<F>, Error> {
        Ok(Value::unknown())
    }
    fn assign_advice<'v>(
        &mut self,
        _: Column<Advice>,
        _: usize,
        _: Value<Assigned<F>>,
    ) -> Value<&'v Assigned<F>> {
        Value::unknown()
    }
    fn assign_fixed(&mut self, _: Column<Fixed>, _: usize, _: Assigned<F>) {}
    fn copy(&mut self, _: Column<Any>, _: usize, _: Column<Any>, _: usize) {}
    fn fill_from_row(&mut self, _: Column<Fixed>, _: usize, _: Value<Assigned<F>>) -> Result<(), Error> {
        Ok(())
    }
    fn get_challenge(&self, _: Challenge) -> Value<F> {
        Value::unknown()
    }
    fn push_namespace<NR: Into<String>, N: FnOnce() -> NR>(&mut self, _: N) {}
    fn pop_namespace(&mut self, _: Option<String>) {}
}
