//! A C header: the matrices as constants and one function that maps a vector, for programs without
//! room for a library. Sums are in double, as the steps of `metra embed` that matter are.

use super::map::{Export, MapPart, bias, weights, write_error};
use crate::{Error, Result};
use std::fmt::Write as _;
use std::io::Write;

const FORMAT: &str = "a C header";
/// Some 50 MB of text, on which compilers take minutes.
const MOST_NUMBERS: usize = 1 << 22;

/// Write the header; its names begin with `name`.
pub fn write_header(mut out: impl Write, export: &Export, name: &str) -> Result<()> {
    let name = c_name(name);
    let text = text(export, &name)?;
    out.write_all(text.as_bytes())
        .map_err(|e| write_error(FORMAT, e))
}

/// A name that C takes: letters, digits and underscores, not beginning with a digit.
pub fn c_name(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let fitting: String = name.chars().map(fit).collect();
    match fitting.chars().next() {
        Some(first) if !first.is_ascii_digit() => fitting,
        _ => format!("m{fitting}"),
    }
}

fn text(export: &Export, name: &str) -> Result<String> {
    let parts = export.parts(FORMAT)?;
    let numbers = weights(&parts);
    if numbers > MOST_NUMBERS {
        return Err(Error::unsupported(
            FORMAT,
            format!("{numbers} numbers"),
            format!(
                "compilers take minutes above {MOST_NUMBERS}: read a file of npy or safetensors"
            ),
        ));
    }
    let upper = name.to_uppercase();
    let (input, output) = (export.input_dim(), export.output_dim());
    let mut constants = String::new();
    let mut work = String::new();
    let mut before = "input".to_owned();
    let mut dim = input;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        let after = if last {
            "output".to_owned()
        } else {
            format!("part_{number}")
        };
        let rank = match part {
            MapPart::Affine(map) => map.output_dim(),
            MapPart::UnitLength => dim,
        };
        if !last {
            let _ = writeln!(work, "    float {after}[{rank}];");
        }
        match part {
            MapPart::Affine(map) => {
                let (weights, added) = (map.weights(), bias(map));
                array(
                    &mut constants,
                    &format!("{name}_weights_{number}"),
                    weights.values(),
                );
                array(&mut constants, &format!("{name}_bias_{number}"), &added);
                let _ = write!(
                    work,
                    "    for (size_t row = 0; row < {rank}; row++) {{\n        double sum = \
                     {name}_bias_{number}[row];\n        for (size_t at = 0; at < {dim}; at++)\n            \
                     sum += (double){name}_weights_{number}[row * {dim} + at] * {before}[at];\n        \
                     {after}[row] = (float)sum;\n    }}\n"
                );
            }
            MapPart::UnitLength => {
                let _ = write!(
                    work,
                    "    {{\n        double squares = 0;\n        for (size_t at = 0; at < {dim}; \
                     at++)\n            squares += (double){before}[at] * {before}[at];\n        if \
                     (!(squares > 0)) return 1;\n        for (size_t at = 0; at < {dim}; at++)\n            \
                     {after}[at] = (float)({before}[at] / sqrt(squares));\n    }}\n"
                );
            }
        }
        (before, dim) = (after, rank);
    }
    if parts.is_empty() {
        let _ = writeln!(
            work,
            "    for (size_t at = 0; at < {dim}; at++) output[at] = input[at];"
        );
    }
    let about = export.about();
    Ok(format!(
        "/* {about}. */\n#ifndef {upper}_H\n#define {upper}_H\n\n#include <math.h>\n#include \
         <stddef.h>\n\n#define {upper}_INPUT {input}\n#define {upper}_OUTPUT {output}\n\n{constants}\n/* \
         Map {input} dimensions to {output}. Returns 0, or 1 where a vector of length 0 has no direction.\n   \
         The two must not overlap. */\nstatic inline int {name}_map(const float *input, float *output) \
         {{\n{work}    return 0;\n}}\n\n#endif\n"
    ))
}

/// Rust writes as many digits as it takes to read the same number back.
fn array(text: &mut String, name: &str, values: &[f32]) {
    let _ = write!(text, "static const float {name}[{}] = {{", values.len());
    for (number, value) in values.iter().enumerate() {
        text.push_str(if number % 8 == 0 { "\n    " } else { " " });
        let _ = write!(text, "{value:e}f,");
    }
    text.push_str("\n};\n");
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::{model, two_of_three};
    use super::*;
    use metra::data::ElementMap;
    use metra::model::{Side, Space, Step};
    use std::process::Command;

    /// What a program compiled with the header prints for vectors, a line each.
    fn compiled(export: &Export, inputs: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut header = Vec::new();
        write_header(&mut header, export, "a model").unwrap();
        std::fs::write(at("model.h"), header).unwrap();
        let program = format!(
            r#"#include "model.h"
               #include <stdio.h>
               int main(void) {{
                   const float inputs[][A_MODEL_INPUT] = {{{}}};
                   for (int i = 0; i < {}; i++) {{
                       float output[A_MODEL_OUTPUT];
                       if (a_model_map(inputs[i], output)) printf("none");
                       else for (int j = 0; j < A_MODEL_OUTPUT; j++) printf("%g ", output[j]);
                       printf("\n");
                   }}
                   return 0;
               }}"#,
            inputs.join(", "),
            inputs.len()
        );
        std::fs::write(at("main.c"), program).unwrap();
        let built = Command::new("cc")
            .current_dir(folder.path())
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(["main.c", "-o", "main", "-lm"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{errors}");
        let ran = Command::new(at("main")).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn a_program_maps_vectors() {
        let plain = model(3, Vec::new(), two_of_three(), Space::SquaredL2);
        let export = Export::embedding(&plain, Side::Item).unwrap();
        // 1 + 4 + 9 + ½ and 4 + 10 + 18 − 1.
        assert_eq!(compiled(&export, &["{1, 2, 3}"]), "14.5 31 \n");
        let unit = vec![Step::Element(ElementMap::Normalise)];
        let both = model(3, unit, two_of_three(), Space::Cosine);
        let export = Export::embedding(&both, Side::Item)
            .unwrap()
            .at_unit_length();
        // (0, 0, 2) has the direction (0, 0, 1): (3.5, 5), whose length is √37.25.
        let printed = compiled(&export, &["{0, 0, 2}", "{0, 0, 0}"]);
        assert_eq!(printed, "0.573462 0.819232 \nnone\n");
    }

    #[test]
    fn names_are_made_to_fit() {
        assert_eq!(c_name("a model-2"), "a_model_2");
        assert_eq!(c_name("2nd"), "m2nd");
        assert_eq!(c_name(""), "m");
    }
}
