//! The fields and curves that kernels are compiled for.
//!
//! A generic function is compiled in each package that calls it for types which that package knows. A kernel
//! is a loop over lanes, of which there are three kinds: each package with a proof system would compile all
//! of them anew. The functions of [`FieldKernels`] and [`CurveKernels`] are generic over nothing, so they are
//! compiled here, once for each field and curve below, and nowhere else. A new field or curve is a line here.

use std::any::Any;

use ark_ec::CurveConfig;
use ark_ec::short_weierstrass::SWCurveConfig;

use crate::backend::{Backend, Factor};
use crate::curve::Point;
use crate::field::{CoordinateField, KernelField};
use crate::msm::compiled::{Add, NewGroups};
use crate::ntt::compiled as ntt;
use crate::points::compiled::{MultiplyBlock, NewState, NewTable, SumsAndDifferences, Walk};
use crate::poly::compiled as poly;
use crate::vector::compiled as vector;

/// A trait with a function for each kernel, which runs it on a backend, for each type that is listed.
macro_rules! kernels {
    (
        $(#[$doc:meta])*
        pub trait $name:ident: [$($bound:tt)+] for $types:tt $functions:tt
    ) => {
        kernels!(@trait [$(#[$doc])*] $name [$($bound)+] $functions);
        kernels!(@impls $name $types $functions);
    };
    (@trait [$(#[$doc:meta])*] $name:ident [$($bound:tt)+] { $(fn $function:ident($kernel:ty) -> $output:ty = $run:ident;)+ }) => {
        $(#[$doc])*
        pub trait $name: $($bound)+ {
            $(#[doc(hidden)] fn $function(backend: Backend, kernel: $kernel) -> $output;)+
        }
    };
    (@impls $name:ident { $($(#[$when:meta])* $type:ty;)+ } $functions:tt) => {
        $(kernels!(@impl [$(#[$when])*] $name [$type] $functions);)+
    };
    (@impl [$(#[$when:meta])*] $name:ident [$type:ty] { $(fn $function:ident($kernel:ty) -> $output:ty = $run:ident;)+ }) => {
        $(#[$when])*
        impl $name for $type {
            $(#[inline(never)] fn $function(backend: Backend, kernel: $kernel) -> $output { backend.$run(kernel) })+
        }
    };
}

kernels! {
    /// A field that the kernels over scalars are compiled for.
    pub trait FieldKernels: [Sized] for {
        ark_bn254::Fr;
        ark_bls12_381::Fr;
        ark_pallas::Fr;
        ark_vesta::Fr;
    } {
        fn run_product(vector::Product<'_, Self>) -> () = run;
        fn run_scaled(vector::Scaled<'_, Self>) -> () = run;
        fn run_instructions(vector::InLanes<'_, '_, '_, '_, Self>) -> Option<usize> = run_wide;
        fn run_evaluate(poly::Evaluate<'_, Self>) -> (Self, usize) = run;
        fn run_block_values(poly::BlockValues<'_, Self>) -> Option<poly::Blocks<Self>> = run;
        fn run_divide(poly::Divide<'_, Self>) -> () = run;
        fn run_block_products(poly::BlockProducts<'_, Self>) -> Option<poly::Blocks<Self>> = run;
        fn run_prefix_products(poly::PrefixProducts<'_, Self>) -> () = run;
        fn run_suffix_products(poly::SuffixProducts<'_, Self>) -> () = run;
        fn run_add_scaled(poly::AddScaled<'_, Self>) -> () = run;
        fn run_powers(poly::Powers<'_, Self>) -> () = run;
        fn run_permutation_factors(poly::PermutationFactors<'_, Self>) -> () = run;
        fn run_shifted(poly::Shifted<'_, Self>) -> () = run;
        fn run_gathered(poly::Gathered<'_, '_, Self>) -> () = run;
        fn run_scale(ntt::Scale<'_, Self>) -> () = run;
        fn run_scale_each(ntt::ScaleEach<'_, Self>) -> () = run;
        fn run_factors(ntt::Factors<'_, Self>) -> Option<Vec<Factor>> = run_wide;
        fn run_columns(ntt::Columns<'_, '_, Self>) -> Option<()> = run_wide;
        fn run_rows(ntt::Rows<'_, '_, Self>) -> Option<()> = run_wide;
    }
}

kernels! {
    /// A curve that the kernels over points are compiled for.
    pub trait CurveKernels: [SWCurveConfig + CurveConfig<BaseField: CoordinateField, ScalarField: KernelField>] for {
        ark_bn254::g1::Config;
        ark_bn254::g2::Config;
        ark_bls12_381::g1::Config;
        ark_bls12_381::g2::Config;
        ark_pallas::PallasConfig;
        ark_vesta::VestaConfig;
        #[cfg(test)]
        crate::points::tests::Other;
    } {
        fn run_new_groups(NewGroups<Self>) -> Box<dyn Any + Send> = run;
        fn run_add(Add<'_, '_, Self>) -> () = run;
        fn run_new_state(NewState<Self>) -> Box<dyn Any + Send> = run;
        fn run_walk(Walk<'_, Self>) -> () = run;
        fn run_sums_and_differences(SumsAndDifferences<'_, Self>) -> () = run;
        fn run_new_table(NewTable<'_, Self>) -> Vec<Point<Self>> = run_once;
        fn run_multiply_block(MultiplyBlock<'_, Self>) -> () = run_once;
    }
}
