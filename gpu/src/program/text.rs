//! A lowered program as CUDA text: `gpu/kernels/compiled.cuh` defines its words.

use std::fmt::Write;

use super::instructions::FIELD;
use super::lower::{LoweredProgram, Operator, Statement};
use crate::kernels::Text;

/// The kernels' files that a generated text includes.
const HEADERS: [&str; 6] = [
    "platform.cuh",
    "chain.cuh",
    "field.cuh",
    "goldilocks.cuh",
    "rows.cuh",
    "compiled.cuh",
];

/// The name of the kernel with this number.
pub(super) fn kernel_name(number: usize) -> String {
    format!("spk_compiled_{number}")
}

/// The text, which is the same for every program of one shape, whatever its constants.
pub(super) fn text(lowered: &LoweredProgram) -> Text {
    let mut main = String::from("#include \"compiled.cuh\"\nusing namespace spk;\n");
    for (number, statements) in lowered.kernels.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = kernel(&mut main, number, statements);
    }
    let mut text = Text::built_in();
    text.headers.retain(|(name, _)| HEADERS.contains(&name.as_str()));
    text.name = "compiled_program.cu".into();
    text.main = main;
    text.options.clear();
    text
}

fn kernel(text: &mut String, number: usize, statements: &[Statement]) -> Result<(), std::fmt::Error> {
    let name = kernel_name(number);
    writeln!(text, "\nSPK_COMPILED({name}, {FIELD}) {{\n    SPK_ROW(i, row) {{")?;
    for statement in statements {
        text.push_str("        ");
        match *statement {
            Statement::Read { to, query } => {
                writeln!(text, "const {FIELD} x{to} = read(program, {query}, row);")
            }
            Statement::Constant { to, number } => {
                writeln!(text, "const {FIELD} x{to} = constant(program, {number});")
            }
            Statement::Zero { to } => writeln!(text, "const {FIELD} x{to} = {FIELD}::zero();"),
            Statement::Kept { to, slot } => writeln!(text, "const {FIELD} x{to} = kept(program, {slot}, i);"),
            Statement::Keep { slot, value } => writeln!(text, "keep(program, {slot}, i, x{value});"),
            Statement::Give { output, value } => writeln!(text, "give(program, {output}, i, x{value});"),
            Statement::Compute { to, operator, a, b } => {
                let call = match operator {
                    Operator::Sum => "sum",
                    Operator::Difference => "difference",
                    Operator::Product => "product",
                };
                writeln!(text, "const {FIELD} x{to} = {call}(x{a}, x{b});")
            }
        }?;
    }
    writeln!(text, "    }}\n}}")
}
