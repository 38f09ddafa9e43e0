//! The program under test, under the fake driver.

use std::process::{Command, Output};

use serde_json::Value;
use spillproof_fake_driver::FakeDevice;

use super::BINARY;

pub fn under(device: &FakeDevice) -> Command {
    device.command(BINARY)
}

/// The binary under a driver that knows so many devices.
pub fn with_devices(device: &FakeDevice, count: u64) -> Command {
    device.command_with(BINARY, count)
}

/// The binary under a driver that knows no device.
pub fn without_devices(device: &FakeDevice) -> Command {
    with_devices(device, 0)
}

/// What a run that went well wrote as JSON: events of steps come first, one a line; the result is the last of
/// all.
pub fn last_value(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    values.map(|value| value.unwrap()).last().unwrap()
}
