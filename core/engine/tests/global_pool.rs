//! Callers on every thread of rayon's global pool, and an accelerator whose own threads read columns
//! meanwhile.
//!
//! One test, since it sizes the global pool of its process.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use ark_bn254::{Fr, G1Projective, g1};
use ark_ec::PrimeGroup;
use ark_ff::AdditiveGroup;
use rayon::prelude::*;
use spillproof_commit::G1;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_engine::accelerator::{self, Accelerator, Answer};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::{Element, Placement, Writer};
use spillproof_engine::stream::{Scalars, msm};
use spillproof_testing::watchdog;
use std::sync::Arc;

/// Reads whole jobs on a thread of its own, in pieces that are hashed in parallel.
#[derive(Debug)]
struct OnItsOwnThread;

impl Accelerator for OnItsOwnThread {
    fn sums(&self, job: &mut accelerator::Sums<'_>, _: &Budget) -> Result<Answer<accelerator::Totals>> {
        let n = job.scalars[0].len;
        let parts = job.parts.as_ref().expect("sums in parts");
        let sum = std::thread::scope(|scope| {
            let device = scope.spawn(|| -> Result<G1Projective> {
                let mut job = (parts.of)(0..n)?;
                let mut points = vec![0; n as usize * G1::BYTES];
                job.bases.g1[0].source.read(0, &mut points)?;
                let mut scalars = vec![0; n as usize * Fr::BYTES];
                job.scalars[0].source.read(0, &mut scalars)?;
                let terms = scalars
                    .chunks_exact(Fr::BYTES)
                    .zip(points.chunks_exact(G1::BYTES));
                let mut sum = G1Projective::ZERO;
                for (scalar, point) in terms {
                    let scalar = Fr::decode(scalar);
                    if scalar != Fr::ZERO {
                        sum += G1::decode(point).to_affine::<g1::Config>() * scalar;
                    }
                }
                Ok(sum)
            });
            device.join().expect("no panic")
        });
        Ok(Answer::Done(accelerator::Totals {
            g1: vec![sum?],
            g2: Vec::new(),
        }))
    }

    fn transform(&self, _: &mut accelerator::Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("sums only".into()))
    }

    fn quotient(&self, _: &mut accelerator::Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("sums only".into()))
    }
}

#[test]
fn callers_on_every_thread_of_the_global_pool_do_not_hold_up_an_accelerators_threads() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build_global()
        .expect("the first");
    watchdog::within(60, "sums on the global pool", || {
        for threads in [1, 2, 3] {
            let dir = tempfile::tempdir().expect("temporary directory");
            let session = Session::builder()
                .memory(ByteSize::Bytes(64 << 20))
                .dir(dir.path())
                .threads(threads)
                .accelerator(Arc::new(OnItsOwnThread))
                .build()
                .expect("a session");
            let n = 1u64 << 15;
            let mut points = Writer::scratch(session.workspace(), "points", n, Placement::Disk).unwrap();
            let generator = G1::from_affine::<g1::Config>(&G1Projective::generator().into());
            points.push(&vec![generator; n as usize]).unwrap();
            let points = points.finish().unwrap();
            let mut scalars = Writer::scratch(session.workspace(), "scalars", n, Placement::Disk).unwrap();
            let values: Vec<Fr> = (0..n)
                .map(|i| Fr::from(if i % 1000 == 0 { i } else { 0 }))
                .collect();
            scalars.push(&values).unwrap();
            let scalars = scalars.finish().unwrap();
            let expected = G1Projective::generator() * values.iter().sum::<Fr>();
            // As many callers at a time as the global pool has threads.
            (0..8).into_par_iter().for_each(|_| {
                let sums = msm::<g1::Config>(&points, &[Scalars::Column(&scalars)]);
                assert_eq!(sums.unwrap(), [expected]);
            });
        }
    });
}
