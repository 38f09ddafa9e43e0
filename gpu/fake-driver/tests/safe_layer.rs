//! The fake driver under the unmodified safe layer of `cudarc`: it gives the results of a real device, and
//! detects misuse.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use spillproof_fake_driver::{FakeDriver, Order, build, under};

fn kernel(context: &Arc<CudaContext>, name: &str) -> Result<CudaFunction, DriverError> {
    let image = Ptx::from_binary(spillproof_fake_driver::test_kernels_image());
    context.load_module(image)?.load_function(name)
}

fn config(threads: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (threads.div_ceil(32), 1, 1),
        block_dim: (32, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn scale(stream: &Arc<CudaStream>, kernel: &CudaFunction, values: &mut CudaSlice<u64>, factor: u64) {
    let (count, first) = (values.len() as u64, 100u64);
    let mut builder = stream.launch_builder(kernel);
    builder.arg(values).arg(&count).arg(&factor).arg(&first);
    // SAFETY: the parameters of `spk_test_scale`; it touches `count` words.
    unsafe { builder.launch(config(count as u32)) }.unwrap();
}

fn code<T>(result: Result<T, DriverError>) -> CUresult {
    result.map_or_else(|DriverError(code)| code, |_| CUresult::CUDA_SUCCESS)
}

#[test]
fn copies_and_launches_come_out_right_in_every_order() {
    under(
        module_path!(),
        "copies_and_launches_come_out_right_in_every_order",
        |driver| {
            for order in [Order::Late, Order::Eager, Order::Random(1), Order::Random(99)] {
                driver.order(order);
                driver.reset(1, 1 << 20);
                let context = CudaContext::new(0).unwrap();
                let (copies, kernels) = (context.new_stream().unwrap(), context.new_stream().unwrap());
                let kernel = kernel(&context, "spk_test_scale").unwrap();
                let input: Vec<u64> = (0..50).collect();
                // The safe layer makes one stream wait for the other.
                let mut values = copies.clone_htod(&input).unwrap();
                scale(&kernels, &kernel, &mut values, 3);
                let output = copies.clone_dtoh(&values).unwrap();
                assert_eq!(
                    output,
                    (0..50).map(|i| i * 3 + i + 100).collect::<Vec<u64>>(),
                    "{order:?}"
                );
                drop((values, kernel, copies, kernels, context));
                driver.assert_clean(&format!("{order:?}"));
            }
        },
    );
}

#[test]
fn nothing_runs_before_it_is_waited_for() {
    under(module_path!(), "nothing_runs_before_it_is_waited_for", |driver| {
        let context = CudaContext::new(0).unwrap();
        let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        // SAFETY: written before it is read.
        let mut pinned = unsafe { context.alloc_pinned_with_flags::<u64>(4, 0) }.unwrap();
        pinned.as_mut_slice().unwrap().fill(1);
        let start = pinned.as_mut_ptr().unwrap();
        let mut values = first.alloc_zeros::<u64>(4).unwrap();
        first.memcpy_htod(&pinned, &mut values).unwrap();
        // SAFETY: the copy has not run, as this test shows; no other code accesses the memory.
        unsafe { std::slice::from_raw_parts_mut(start, 4) }.fill(2);
        second.synchronize().unwrap();
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(start, 4) }.fill(3);
        assert_eq!(
            first.clone_dtoh(&values).unwrap(),
            [3; 4],
            "the copy ran when it was needed, not before"
        );

        // Pageable memory is read before the call returns.
        let mut pageable = vec![4u64; 4];
        first.memcpy_htod(&pageable, &mut values).unwrap();
        pageable.fill(5);
        assert_eq!(first.clone_dtoh(&values).unwrap(), [4; 4]);

        let event = first.record_event(None).unwrap();
        let polls = (0..100).take_while(|_| !event.is_complete()).count();
        assert!(
            (1..100).contains(&polls),
            "a loop that polls comes to an end, after {polls} polls"
        );
        drop((pinned, values, event, first, second, context));
        driver.assert_clean("after late copies");
    });
}

/// Like the real driver, the fake one reads parameters at the launch: the variables of the caller may be gone
/// when the kernel runs.
#[test]
fn parameters_are_copied_at_the_launch() {
    under(module_path!(), "parameters_are_copied_at_the_launch", |_| {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let kernel = kernel(&context, "spk_test_scale").unwrap();
        let mut values = stream.clone_htod(&[1u64; 10]).unwrap();
        let factor = Box::into_raw(Box::new(2u64));
        let (count, first) = (10u64, 0u64);
        let mut builder = stream.launch_builder(&kernel);
        // SAFETY: made above, freed below, after the last use of `builder`; and the parameters are those of
        // `spk_test_scale`, which touches `count` words.
        unsafe {
            builder.arg(&mut values).arg(&count).arg(&*factor).arg(&first);
            builder.launch(config(10)).unwrap();
            drop(builder);
            factor.write(9);
        }
        let expected: Vec<u64> = (0..10).map(|i| 2 + i).collect();
        assert_eq!(stream.clone_dtoh(&values).unwrap(), expected);
        // SAFETY: from `Box::into_raw`, freed once.
        drop(unsafe { Box::from_raw(factor) });
    });
}

#[test]
fn misuse_is_answered() {
    under(module_path!(), "misuse_is_answered", |driver| {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        // SAFETY: the fake driver checks ranges against its own records; this test shows it.
        unsafe {
            let start = result::malloc_sync(64).unwrap();
            let past = result::memset_d8_async(start, 0, 65, stream.cu_stream());
            assert_eq!(code(past), CUresult::CUDA_ERROR_INVALID_VALUE);
            let wrapped = result::memset_d8_async(start + 8, 0, usize::MAX, stream.cu_stream());
            assert_eq!(code(wrapped), CUresult::CUDA_ERROR_INVALID_VALUE);
            assert_eq!(
                code(result::free_sync(start + 8)),
                CUresult::CUDA_ERROR_INVALID_VALUE
            );
            assert_eq!(driver.violations().len(), 1, "the wrong free");
            assert_eq!(code(result::free_sync(start)), CUresult::CUDA_SUCCESS);
        }
        let scale = kernel(&context, "spk_test_scale").unwrap();
        let mut builder = stream.launch_builder(&scale);
        let block = LaunchConfig {
            block_dim: (2048, 1, 1),
            ..config(1)
        };
        // SAFETY: refused before it runs.
        let too_many = unsafe { builder.launch(block) };
        assert_eq!(code(too_many), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            code(kernel(&context, "spk_absent")),
            CUresult::CUDA_ERROR_NOT_FOUND
        );
        let garbage = context.load_module(Ptx::from_src("garbage"));
        assert_eq!(code(garbage), CUresult::CUDA_ERROR_INVALID_IMAGE);
        assert_eq!(
            code(stream.alloc_zeros::<u8>(1 << 30)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY
        );
    });
}

/// Frees memory under a queued fill: the fill fails when it runs, and so do all later calls.
fn free_under_a_fill(driver: &FakeDriver) {
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    // SAFETY: the misuse is the test; the fake driver checks before it writes.
    unsafe {
        let start = result::malloc_sync(64).unwrap();
        result::memset_d8_async(start, 7, 64, stream.cu_stream()).unwrap();
        result::free_sync(start).unwrap();
    }
    for result in [stream.synchronize(), context.synchronize(), stream.synchronize()] {
        assert_eq!(code(result), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    assert_eq!(driver.violations().len(), 1);
}

#[test]
fn use_after_free_loses_the_device() {
    under(
        module_path!(),
        "use_after_free_loses_the_device",
        free_under_a_fill,
    );
}

/// Kernels run as host code on real maps: a kernel that writes past its buffer hits the canary, or the guard
/// page behind it.
#[test]
fn a_kernel_that_writes_past_its_buffer_is_noticed() {
    under(
        module_path!(),
        "a_kernel_that_writes_past_its_buffer_is_noticed",
        |driver| {
            let context = CudaContext::new(0).unwrap();
            let stream = context.new_stream().unwrap();
            let kernel = kernel(&context, "spk_test_scale").unwrap();
            let values = stream.alloc_zeros::<u64>(3).unwrap();
            let (count, factor, first) = (4u64, 1u64, 0u64);
            let mut builder = stream.launch_builder(&kernel);
            builder.arg(&values).arg(&count).arg(&factor).arg(&first);
            // SAFETY: one word too many, within the rounding of the allocation, where the canary is.
            unsafe { builder.launch(config(4)) }.unwrap();
            stream.synchronize().unwrap();
            drop(values);
            assert_eq!(driver.violations().len(), 1, "{:?}", driver.violations());
            assert!(driver.violations()[0].contains("behind the end"));
        },
    );
}

#[test]
fn the_library_is_the_one_that_cudarc_loads() {
    under(
        module_path!(),
        "the_library_is_the_one_that_cudarc_loads",
        |driver| {
            // SAFETY: the fake driver's initialisers do nothing.
            assert!(unsafe { sys::is_culib_present() });
            driver.reset(3, 1 << 20);
            assert_eq!(CudaContext::device_count().unwrap(), 3);
            driver.reset(0, 1 << 20);
            assert_eq!(code(CudaContext::device_count()), CUresult::CUDA_ERROR_NO_DEVICE);
        },
    );
}

/// The program that `settings_come_from_the_environment` starts.
#[test]
fn program_under_the_fake_driver() {
    if std::env::var_os("FAKE_CUDA_DEVICES").is_none() {
        return;
    }
    assert_eq!(CudaContext::device_count().unwrap(), 4);
    assert_eq!(
        code(CudaContext::device_count()),
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY
    );
    let context = CudaContext::new(3).unwrap();
    assert_eq!(context.total_mem().unwrap(), 12_345);
    // With eager order the work is done without a wait.
    let stream = context.new_stream().unwrap();
    let mut values = stream.alloc_zeros::<u64>(4).unwrap();
    let event = context.new_event(None).unwrap();
    stream.memset_zeros(&mut values).unwrap();
    event.record(&stream).unwrap();
    assert!(event.is_complete());
    println!("it did run");
}

#[test]
fn settings_come_from_the_environment() {
    // Without a compiler the other tests print the reason.
    let Ok(built) = build() else { return };
    let output = built
        .command(std::env::current_exe().unwrap())
        .args(["--exact", "program_under_the_fake_driver", "--nocapture"])
        .env("FAKE_CUDA_DEVICES", "4")
        .env("FAKE_CUDA_MEMORY_BYTES", "12345")
        .env("FAKE_CUDA_ORDER", "eager")
        .env("FAKE_CUDA_FAIL", "cuDeviceGetCount:2:802")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("it did run"), "{said}");
}
