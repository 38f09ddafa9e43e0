//! Circuits by name. `configure` is told nothing but the type, so there is a prover for each circuit.

/// Evaluates an expression in which `$circuit` is the type of the circuit of this name.
macro_rules! with_circuit {
    ($kind:expr, $circuit:ident => $value:expr) => {
        match $kind {
            crate::Kind::Chain => {
                type $circuit = super::chain::Chain;
                $value
            }
            crate::Kind::Wide => {
                type $circuit = super::wide::Wide;
                $value
            }
            crate::Kind::Lookups => {
                type $circuit = super::lookups::Lookups;
                $value
            }
        }
    };
}
pub(super) use with_circuit;
