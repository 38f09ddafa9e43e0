//! The kernels through the driver: under the fake one, which runs their host build as late as the API allows,
//! and on a real device where NVRTC is installed.

use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::UniformRand;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use spillproof_fake_driver::{host_module_image, under};
use spillproof_gpu::kernels::{Nvrtc, Text, image};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Choice, Gpu};

use ark_bn254::{Fq, Fr};

use crate::support::kernels::curves::{Bn254, Sum, points};
use crate::support::kernels::msm::Msm;
use crate::support::kernels::ntt::{Element, Layout, Scale, Tables, transform};
use crate::support::kernels::{Device, Kernels, Words, input, output, word, words};
use crate::support::{rng, skipped};

/// Products, an MSM in two chunks, and a transform on a coset in passes, of about `n` elements.
fn jobs(kernels: &Kernels, log_n: u32) {
    let n = 1usize << log_n;
    let mut rng = rng("on a device");

    let (a, b): (Vec<Fq>, Vec<Fq>) = (0..n).map(|_| (Fq::rand(&mut rng), Fq::rand(&mut rng))).unzip();
    let in_words = |values: &[Fq]| values.iter().map(words).collect::<Vec<Words>>();
    let (left, right) = (in_words(&a), in_words(&b));
    let mut products = vec![[0; 4]; n];
    let arguments = vec![output(&mut products), input(&left), input(&right), word(n as u32)];
    kernels.launch("spk_mul_bn254_fq", (n.div_ceil(64), 1), 64, 0, arguments);
    for i in 0..n {
        assert_eq!(products[i], words(&(a[i] * b[i])));
    }

    let points = points::<Bn254>(n, 100, &mut rng);
    let scalars: Vec<Fr> = (0..n)
        .map(|i| {
            if i % 3 == 0 {
                Fr::from(1u64)
            } else {
                Fr::rand(&mut rng)
            }
        })
        .collect();
    let mut msm = Msm::<Bn254>::new(kernels, 8, 31);
    let first = n / 3;
    msm.add(&points[..first], &scalars[..first]);
    msm.add(&points[first..], &scalars[first..]);
    let expected = Sum::<Bn254>::msm(&points, &scalars).unwrap().into_affine();
    assert_eq!(msm.finish(16), expected);

    let shift = Fr::rand(&mut rng);
    let domain = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
    let expected = domain.get_coset(shift).unwrap().fft(&scalars);
    let coset = Tables::new(shift, log_n, Fr::ONE);
    let layout = Layout {
        rows: 1,
        stride: 1,
        batch: n,
    };
    let mut values = scalars;
    // With two columns, tiles of 2^(radix + 2) elements: at most the 48 KiB of shared memory that every
    // device has.
    let half = (log_n - 4) / 2;
    let scales = (coset.scale(1, 0, 0, 0), Scale::NONE);
    transform(
        kernels,
        &mut values,
        Fr::root(log_n),
        &[4, half, log_n - 4 - half],
        2,
        layout,
        scales,
    );
    assert_eq!(values, expected);
}

#[test]
fn under_the_fake_driver() {
    under(module_path!(), "under_the_fake_driver", |driver| {
        let library = match spillproof_gpu_host::library() {
            Ok(library) => library,
            Err(reason) => return skipped(&reason),
        };
        driver.reset(1, 64 << 20);
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let device = Device::new(&gpu, &host_module_image(&library), 60 << 20);
        jobs(&Kernels::Device(device), 7);
        assert!(gpu.release_failures().is_empty());
        drop(gpu);
        driver.assert_clean("after all kernels");
    });
}

#[test]
fn on_a_device() {
    let gpu = match Choice::Auto.open(Detail::Counts).unwrap() {
        Ok(gpu) => gpu,
        Err(reason) => return skipped(&reason),
    };
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(reason) => return skipped(&reason),
    };
    let image = image(&gpu, &Text::built_in(), &nvrtc, None).unwrap();
    let _turn = gpu.take_turn();
    jobs(&Kernels::Device(Device::new(&gpu, &image, 1 << 30)), 14);
    assert!(gpu.release_failures().is_empty());
}
