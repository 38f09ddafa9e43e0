//! All tests of the crate's public interface, in one binary: a module for each subject.
//!
//! Tests in `on_device`, `kernels_on_device` and `accelerator_on_device` use a real device and print
//! `SKIPPED` with the reason where there is none: `cargo test -p spillproof-gpu on_device` runs them. All
//! others run under the fake driver, or call the kernels' host build.
#![allow(unsafe_code, clippy::unwrap_used)]

mod accelerator_constraints;
mod accelerator_devices;
mod accelerator_groups;
mod accelerator_jobs;
mod accelerator_on_device;
mod accelerator_panels;
mod accelerator_plan;
mod accelerator_quotient;
mod accelerator_reads;
mod accelerator_staging;
mod accelerator_stays;
mod device;
mod failures;
mod kernels_curve;
mod kernels_field;
mod kernels_msm;
mod kernels_ntt;
mod kernels_nvrtc;
mod kernels_on_device;
mod kernels_program;
mod kernels_rates;
mod kernels_sparse;
mod measure;
mod msm;
mod msm_columns;
mod ntt;
mod ntt_goldilocks;
mod nvrtc;
mod on_device;
mod probe;
mod ring;
mod sessions;
mod support;
