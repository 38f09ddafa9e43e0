//! Events of progress as JSON objects, one a line.
//!
//! Not by `serde_json`: it compares its values with integers and texts of the standard library, and with
//! those comparisons anywhere among its dependencies a program over a drop-in no longer compiles where it has
//! `assert_eq!(bytes.len(), size.into())`.

use std::fmt::Write;

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Count(u64),
    /// Not a number and infinity are `null`.
    Number(f64),
}

/// Fields in their order.
pub(crate) type Fields<'a> = Vec<(&'static str, Value<'a>)>;

/// The object of these fields.
pub(crate) fn object(fields: &[(&'static str, Value<'_>)]) -> String {
    let mut line = String::from("{");
    for (index, (name, value)) in fields.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { "," });
        text(&mut line, name);
        line.push(':');
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Text(value) => {
                text(&mut line, value);
                Ok(())
            }
            Value::Count(value) => write!(line, "{value}"),
            Value::Number(value) if value.is_finite() => write!(line, "{value:?}"),
            Value::Number(_) => write!(line, "null"),
        };
    }
    line.push('}');
    line
}

fn text(line: &mut String, value: &str) {
    line.push('"');
    for character in value.chars() {
        let _ = match character {
            '"' | '\\' => write!(line, "\\{character}"),
            '\0'..='\x1f' => write!(line, "\\u{:04x}", character as u32),
            _ => write!(line, "{character}"),
        };
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let texts = [
            "",
            "quotient",
            "a \"quoted\" \\ text",
            "line\nand\ttab\0",
            "é ∑ 🦀",
        ];
        let numbers = [0.0, 1.0, -0.25, 1e-9, 1.5e300, 14.2];
        for string in texts {
            for number in numbers {
                let line = object(&[
                    ("event", Value::Text(string)),
                    ("column", Value::Count(u64::MAX)),
                    ("fraction", Value::Number(number)),
                    ("eta_seconds", Value::Number(f64::NAN)),
                ]);
                let read: serde_json::Value = serde_json::from_str(&line).unwrap();
                let expected = serde_json::json!({
                    "event": string, "column": u64::MAX, "fraction": number, "eta_seconds": null,
                });
                assert_eq!(read, expected, "{line}");
                assert!(!line.contains('\n'));
            }
        }
        assert_eq!(object(&[]), "{}");
    }
}
