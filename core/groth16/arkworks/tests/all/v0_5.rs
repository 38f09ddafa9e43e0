use ark_bls12_381_0_5 as ark_bls12_381;
use ark_bn254_0_5 as ark_bn254;
use ark_ff_0_5 as ark_ff;
use ark_groth16_0_5 as ark_groth16;
use ark_relations_0_5::r1cs as relations;
use ark_serialize_0_5 as ark_serialize;
use ark_snark_0_5 as ark_snark;
use circuits::{enforce, matrices, new_lc};
use relations::SynthesisError;
use spillproof_arkworks::v0_5 as ours;

#[path = "r1cs.rs"]
mod circuits;
#[path = "version.rs"]
mod version;
