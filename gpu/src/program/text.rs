//! A lowered program as CUDA text: `gpu/kernels/compiled.cuh` defines its words.

use std::fmt::Write;

use super::instructions::ProgramField;
use super::lower::{Lowered, Operator, Statement};
use crate::kernels::Text;

/// The files of the tier that a generated text includes.
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
pub(super) fn text(field: ProgramField, lowered: &Lowered) -> Text {
    let mut main = String::from("#include \"compiled.cuh\"\nusing namespace spk;\n");
    for (number, statements) in lowered.kernels.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = kernel(&mut main, field.name(), number, statements);
    }
    let mut text = Text::of_the_tier();
    text.headers.retain(|(name, _)| HEADERS.contains(&name.as_str()));
    text.name = "compiled_program.cu".into();
    text.main = main;
    text.options.clear();
    text
}

fn kernel(
    text: &mut String,
    field: &str,
    number: usize,
    statements: &[Statement],
) -> Result<(), std::fmt::Error> {
    let name = kernel_name(number);
    writeln!(text, "\nSPK_COMPILED({name}, {field}) {{\n    SPK_ROW(i, row) {{")?;
    for statement in statements {
        text.push_str("        ");
        match *statement {
            Statement::Read { to, query } => {
                writeln!(text, "const {field} x{to} = read(program, {query}, row);")
            }
            Statement::Constant { to, number } => {
                writeln!(text, "const {field} x{to} = constant(program, {number});")
            }
            Statement::Zero { to } => writeln!(text, "const {field} x{to} = {field}::zero();"),
            Statement::Kept { to, slot } => writeln!(text, "const {field} x{to} = kept(program, {slot}, i);"),
            Statement::Keep { slot, value } => writeln!(text, "keep(program, {slot}, i, x{value});"),
            Statement::Give { output, value } => writeln!(text, "give(program, {output}, i, x{value});"),
            Statement::Compute { to, operator, a, b } => {
                let call = match operator {
                    Operator::Sum => "sum",
                    Operator::Difference => "difference",
                    Operator::Product => "product",
                };
                writeln!(text, "const {field} x{to} = {call}(x{a}, x{b});")
            }
        }?;
    }
    writeln!(text, "    }}\n}}")
}
