//! Text files, one line at a time: never the whole file in memory.

use crate::error::{Error, Place, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// The first line of a file that was just opened, with its end; a very long one is cut.
pub(crate) fn first_line(path: &Path, file: File) -> Result<Vec<u8>> {
    const LONGEST: u64 = 1 << 20;
    let mut line = Vec::new();
    let mut reader = BufReader::new(file).take(LONGEST);
    (reader.read_until(b'\n', &mut line)).map_err(|e| Error::io(path, e))?;
    Ok(line)
}

/// Visit every line with its number, counted from 1, without its end (`\n` or `\r\n`) and without
/// the mark that some editors put before the first one.
pub(crate) fn visit_lines(
    path: &Path,
    visit: &mut dyn FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let number = index as u64 + 1;
        let line = line.map_err(|e| match e.kind() {
            ErrorKind::InvalidData => Error::row(
                path,
                Place::Line(number),
                "expected UTF-8, but found other bytes",
            ),
            _ => Error::io(path, e),
        })?;
        let text = match index {
            0 => line.strip_prefix('\u{feff}').unwrap_or(&line),
            _ => &line,
        };
        visit(number, text)?;
    }
    Ok(())
}

/// Visit every line that says something: not blank, and not a comment, which begins with `#`.
pub(crate) fn visit_statements(
    path: &Path,
    visit: &mut dyn FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    visit_lines(path, &mut |number, line| {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        visit(number, text)
    })
}

/// The fields of a statement: separated by tabs where it has one, so that names may hold blanks,
/// and by white space otherwise.
pub(crate) fn fields(text: &str) -> Vec<&str> {
    if text.contains('\t') {
        text.split('\t').map(str::trim).collect()
    } else {
        text.split_whitespace().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_keep_their_numbers_and_fields() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "\u{feff}# a comment\r\na b\r\n\r\n  # another\n a c\td \nlast";
        std::fs::write(file.path(), text).unwrap();
        let mut found = Vec::new();
        visit_statements(file.path(), &mut |number, text| {
            let fields = fields(text).into_iter().map(str::to_owned);
            found.push((number, fields.collect::<Vec<_>>()));
            Ok(())
        })
        .unwrap();
        let expected = [
            (2, vec!["a", "b"]),
            (5, vec!["a c", "d"]),
            (6, vec!["last"]),
        ];
        assert_eq!(
            found,
            expected.map(|(n, f)| (n, f.into_iter().map(String::from).collect()))
        );
        std::fs::write(file.path(), b"a\n\xff\n").unwrap();
        let error = visit_lines(file.path(), &mut |_, _| Ok(())).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("line 2: expected UTF-8, but found other bytes")
        );
    }
}
